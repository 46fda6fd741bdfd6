/**
 * The memory that large bodies may take at once. A body of 5 MiB is some 20 MiB while it is read, parsed and worked on,
 * so bounds on requests alone bound little. A body is charged for the bytes that have arrived, not for those that it
 * announces, until its request is over.
 *
 * A tenant may hold as much as it leaves free for others. So one tenant may take half of the room, two a third each,
 * and a tenant that holds nothing finds room however many others are greedy. The rule is that of shared buffers in
 * switches: A. Choudhury, E. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.
 *
 * A body that finds no room waits, unread, in the kernel's buffers and in the client. If it has waited for a while, it
 * takes the place of a body that still arrives: the one that has been arriving longest, if its tenant holds more. So
 * slow senders lose. A body that has arrived whole is never given up.
 */
import { ServiceError } from '../../errors.ts';

export interface BodyRoomOptions {
  /** Bounds the bytes of all bodies together. */
  readonly bytesMax: number;
  /** A body waits so long for room, and then is lost. */
  readonly waitMs: number;
  /** After waiting so long it takes the place of a slower one. */
  readonly patienceMs: number;
}

/** The place of one body. */
export interface BodyPlace {
  /** Takes room for so many more bytes: at once (`undefined`), or when what is returned resolves. */
  take(bytes: number): Promise<void> | undefined;
  /** The body is there: it is not given up any more. */
  arrived(): void;
  /** Gives everything back; to be called once the body is of no more use, and also when it is lost. */
  leave(): void;
}

interface Body {
  readonly tenantId: string;
  readonly lose: (reason: ServiceError) => void;
  held: number;
}

interface Wait {
  readonly bytes: number;
  readonly enter: () => void;
  readonly timers: NodeJS.Timeout[];
}

const retryAfterSeconds = 5;

export class BodyRoom {
  readonly #options: BodyRoomOptions;
  readonly #heldByTenant = new Map<string, number>();
  #held = 0;
  /** In the order in which they began. */
  readonly #arriving = new Set<Body>();
  /** In the order in which they came. */
  readonly #waiting = new Map<Body, Wait>();

  constructor(options: BodyRoomOptions) {
    this.#options = options;
  }

  /** A place that holds nothing yet. `lose` is called at most once: there is no room for the body any more. */
  open(tenantId: string, lose: (reason: ServiceError) => void): BodyPlace {
    const body: Body = { tenantId, lose, held: 0 };
    this.#arriving.add(body);
    return {
      take: (bytes) => this.#take(body, bytes),
      arrived: () => void this.#arriving.delete(body),
      leave: () => this.#leave(body),
    };
  }

  #take(body: Body, bytes: number): Promise<void> | undefined {
    const { waitMs, patienceMs } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wait: Wait = { bytes, enter: resolve, timers: [] };
    this.#waiting.set(body, wait);
    this.#admit();
    if (!this.#waiting.has(body)) return undefined;
    wait.timers.push(
      setTimeout(() => this.#displaceFor(body), patienceMs),
      setTimeout(() => this.#lose(body), waitMs),
    );
    return promise;
  }

  #admit(): void {
    for (let next = this.#next(); next !== undefined && this.#fits(...next); next = this.#next()) {
      const [body, { bytes, enter }] = next;
      this.#stopWaiting(body);
      this.#hold(body, bytes);
      enter();
    }
  }

  /** The body that came first of the tenant that holds least. */
  #next(): [Body, Wait] | undefined {
    let next: [Body, Wait] | undefined;
    for (const entry of this.#waiting) {
      if (next === undefined || this.#heldBy(entry[0]) < this.#heldBy(next[0])) next = entry;
    }
    return next;
  }

  /** Whether its tenant then holds no more than is left free. */
  #fits(body: Body, { bytes }: Wait): boolean {
    return this.#heldBy(body) + bytes <= this.#options.bytesMax - this.#held - bytes;
  }

  /** Makes room for a body that has waited long, as far as slower ones of tenants that hold more can make it. */
  #displaceFor(body: Body): void {
    for (const slower of this.#arriving) {
      const wait = this.#waiting.get(body);
      // It has room now, or is the slowest itself.
      if (wait === undefined || slower === body) return;
      if (this.#heldBy(slower) > this.#heldBy(body) + wait.bytes) this.#lose(slower);
    }
  }

  #lose(body: Body): void {
    this.#leave(body);
    body.lose(
      new ServiceError('service_unavailable', 'too many large bodies are being worked on', {
        retryAfterSeconds,
      }),
    );
  }

  #leave(body: Body): void {
    this.#arriving.delete(body);
    this.#stopWaiting(body);
    this.#hold(body, -body.held);
    // It may have kept others waiting.
    this.#admit();
  }

  #stopWaiting(body: Body): void {
    for (const timer of this.#waiting.get(body)?.timers ?? []) clearTimeout(timer);
    this.#waiting.delete(body);
  }

  #heldBy({ tenantId }: Body): number {
    return this.#heldByTenant.get(tenantId) ?? 0;
  }

  #hold(body: Body, bytes: number): void {
    body.held += bytes;
    this.#held += bytes;
    const held = this.#heldBy(body) + bytes;
    if (held > 0) this.#heldByTenant.set(body.tenantId, held);
    else this.#heldByTenant.delete(body.tenantId);
  }
}
