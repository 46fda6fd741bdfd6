/**
 * The memory that large bodies may take at once. A body of 5 MiB takes some 20 MiB while it is read, parsed and worked on, so
 * a bound on the number of requests is not enough. A body is charged for the bytes that have arrived, until its request is
 * over. The length that it announces does not count.
 *
 * A tenant may hold as much as it leaves free for others. So one tenant may take half of the room, and two tenants a third
 * each. A tenant that holds nothing finds room, however much the others want. Switches share their buffers by the same rule:
 * A. Choudhury, E. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.
 *
 * A part of the share stays free, so that the first of a tenant's arriving bodies can end. Bodies that arrive together, a piece
 * of each in turn, would fill the share otherwise, and none would be whole.
 *
 * A body without room waits unread, in the kernel's buffers and in the client. After a while it takes the place of another
 * body: the one that has been arriving longest, if its tenant holds more. So slow senders lose. A body that has arrived
 * whole keeps its place.
 */
import { ServiceError } from '../../errors.ts';

export interface BodyRoomOptions {
  readonly bytesMax: number;
  /** The largest body; absent = nothing is kept free for a tenant's first body. */
  readonly bodyBytesMax?: number;
  /** How long a body waits for room before its request is refused. */
  readonly waitMs: number;
  /** After this wait a body takes the place of a slower one. */
  readonly patienceMs: number;
}

export interface BodyPlace {
  /** Takes room for so many more bytes: at once (`undefined`), or when the returned promise resolves. */
  take(bytes: number): Promise<void> | undefined;
  /** The body has arrived whole and keeps its place. */
  arrived(): void;
  /** Gives all room back. Call it once the body is no longer used, also after `lose`. */
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
  readonly #arriving = new Set<Body>();
  readonly #waiting = new Map<Body, Wait>();

  constructor(options: BodyRoomOptions) {
    this.#options = options;
  }

  /** A place that holds nothing yet. `lose` is called at most once, if the body loses its place. */
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

  /** The waiting body that began first, of the tenant that holds least. */
  #next(): [Body, Wait] | undefined {
    let next: [Body, Wait] | undefined;
    for (const body of this.#arriving) {
      const wait = this.#waiting.get(body);
      if (wait !== undefined && (next === undefined || this.#heldBy(body) < this.#heldBy(next[0])))
        next = [body, wait];
    }
    return next;
  }

  /** Whether its tenant would then hold no more than is left free, with the rest of its first body. */
  #fits(body: Body, { bytes }: Wait): boolean {
    const more = bytes + this.#keptFree(body);
    return this.#heldBy(body) + more <= this.#options.bytesMax - this.#held - more;
  }

  /** The room that the first of its tenant's arriving bodies may still want. */
  #keptFree(body: Body): number {
    const { bodyBytesMax = 0 } = this.#options;
    for (const first of this.#arriving) {
      if (first.tenantId !== body.tenantId) continue;
      return first === body ? 0 : Math.max(0, bodyBytesMax - first.held);
    }
    return 0;
  }

  /** Makes room for a body that has waited long: slower bodies of tenants that hold more lose their places. */
  #displaceFor(body: Body): void {
    for (const slower of this.#arriving) {
      const wait = this.#waiting.get(body);
      // The body has room now, or is the slowest itself.
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
