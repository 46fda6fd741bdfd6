/** Functions that both kinds of open index use when they are asked. */
import { unavailable, type ServiceError } from '../errors.ts';
import type { Asker } from './contract.ts';

/** For an index that nobody else asks. */
export const alone: Asker = { signal: new AbortController().signal, inTurn: (task) => task() };

/**
 * Waits for `work` until `endsAt` (by `performance.now`). After that it rejects with a 503 that says `why`, and `work` goes on.
 * It rejects with the reason of `signal` when that aborts.
 */
export async function before<T>(
  endsAt: number,
  work: Promise<T>,
  why: string,
  signal?: AbortSignal,
): Promise<T> {
  // Nobody awaits `work` after the deadline, or when the caller has gone: its failure must not count as unhandled.
  work.catch(() => undefined);
  signal?.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal?.reason);
  signal?.addEventListener('abort', leave, { once: true });
  const timer = setTimeout(() => reject(unavailable(why)), Math.max(1, endsAt - performance.now()));
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  }
}

/** Refuses what is asked of an index that has failed, until it is open again. */
export function openingAgain(cause?: unknown): ServiceError {
  return unavailable('the index is being opened again', cause);
}
