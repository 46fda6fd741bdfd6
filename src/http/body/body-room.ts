/**
 * The memory that large bodies may take at once. A body of 5 MiB is some 20 MiB while it is read, parsed and worked
 * on, so bounds on requests alone bound little. Whoever finds no room waits with its body unread, in the kernel's
 * buffers and in the client. A tenant may take a part of it only, and the one that holds least comes next: slow or
 * many uploads of one do not keep another's out.
 */
import { ServiceError } from '../../errors.ts';

export interface BodyRoomOptions {
  /** Bounds the bytes of all bodies that have entered. */
  readonly bytesMax: number;
  readonly tenantBytesMax: number;
  /** How long one waits at most. */
  readonly waitMs: number;
}

interface Entry {
  readonly tenantId: string;
  readonly bytes: number;
}

const retryAfterSeconds = 5;

export class BodyRoom {
  readonly #options: BodyRoomOptions;
  readonly #heldByTenant = new Map<string, number>();
  #held = 0;
  /** In the order they came. */
  readonly #waiting = new Map<Entry, () => void>();

  constructor(options: BodyRoomOptions) {
    this.#options = options;
  }

  /**
   * Resolves when there is room, to what gives it back, to be called once. Rejects with `service_unavailable` when
   * there is none in time, and with the signal's reason.
   */
  async enter(entry: Entry, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (reason: unknown): void => {
      if (!this.#waiting.delete(entry)) return;
      reject(reason);
      // It may have kept others waiting.
      this.#admit();
    };
    const timer = setTimeout(() => leave(noRoom()), this.#options.waitMs);
    const onGone = (): void => leave(signal.reason);
    signal.addEventListener('abort', onGone);
    this.#waiting.set(entry, resolve);
    this.#admit();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onGone);
    }
    return () => {
      this.#hold(entry, -entry.bytes);
      this.#admit();
    };
  }

  #admit(): void {
    const { bytesMax, tenantBytesMax } = this.#options;
    for (;;) {
      const next = this.#next();
      if (next === undefined || this.#held + next.bytes > bytesMax) return;
      if (this.#heldBy(next) + next.bytes > tenantBytesMax) return;
      this.#hold(next, next.bytes);
      const enter = this.#waiting.get(next);
      this.#waiting.delete(next);
      enter?.();
    }
  }

  /** The entry that came first of the tenant that holds least. */
  #next(): Entry | undefined {
    let next: Entry | undefined;
    for (const entry of this.#waiting.keys()) {
      if (next === undefined || this.#heldBy(entry) < this.#heldBy(next)) next = entry;
    }
    return next;
  }

  #heldBy({ tenantId }: Entry): number {
    return this.#heldByTenant.get(tenantId) ?? 0;
  }

  #hold(entry: Entry, bytes: number): void {
    this.#held += bytes;
    const held = this.#heldBy(entry) + bytes;
    if (held > 0) this.#heldByTenant.set(entry.tenantId, held);
    else this.#heldByTenant.delete(entry.tenantId);
  }
}

function noRoom(): ServiceError {
  return new ServiceError('service_unavailable', 'too many large bodies are being worked on', {
    retryAfterSeconds,
  });
}
