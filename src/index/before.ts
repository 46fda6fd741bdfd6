import { ServiceError } from '../errors.ts';

/**
 * Waits for `work` until `endsAt` (of `performance.now`) at most: then it goes on, and the wait is a 503 that says `why`. Or until
 * `signal` aborts.
 */
export async function before<T>(
  endsAt: number,
  work: Promise<T>,
  why: string,
  signal?: AbortSignal,
): Promise<T> {
  signal?.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const late = () => reject(new ServiceError('service_unavailable', why, { retryAfterSeconds: 1 }));
  const leave = () => reject(signal?.reason);
  signal?.addEventListener('abort', leave, { once: true });
  const timer = setTimeout(late, Math.max(1, endsAt - performance.now()));
  // Nobody is left to hear of a failure behind the deadline.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  }
}
