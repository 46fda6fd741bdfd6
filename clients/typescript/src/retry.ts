/**
 * Whether and when a request is sent again. `Retry-After` is a lower bound; jitter goes on top, so that clients which
 * were given the same moment do not come back in one. Without it: exponential backoff with full jitter
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * A request that is not safe to repeat is sent again only when the service certainly did not carry it out: it was
 * refused for its rate or concurrency (429), or no connection was made. One that can be done only once is sent again
 * after 503 too, most of which are said before anything is done.
 */
import { ApiError, ConnectionError } from './errors.ts';

const backoffMsBase = 500;
const backoffMsMax = 30_000;
const jitterMsMax = 1_000;
/** Of a request that the service fails on (500): more would hardly help. */
const brokenAttemptsMax = 3;
const passing = new Set([408, 502, 503, 504]);

/**
 * For all attempts of a request together. An address where nobody ever answered is most likely wrong; the next attempt,
 * which may take as long as the last one, must have room within 5 s.
 */
export function repeatMsMax(state: { readonly wasConnected: boolean; readonly attemptMs: number }): number {
  return state.wasConnected ? 120_000 : 5_000 - state.attemptMs;
}

/** The service is well, and asks the tenant for patience. */
export function isRefusedForNow(error: unknown): boolean {
  return error instanceof ApiError && error.status === 429 && error.code !== 'usage_limit_exceeded';
}

/** Milliseconds before attempt `attempts + 1`; `undefined` = give up. `random` is uniform in [0, 1). */
export function repeatDelayMs(
  error: unknown,
  request: { readonly attempts: number; readonly isSafe: boolean; readonly isUnique?: boolean },
  random: () => number,
): number | undefined {
  const backoffMs =
    random() * Math.min(backoffMsMax, backoffMsBase * 2 ** Math.min(request.attempts - 1, 16));
  if (error instanceof ConnectionError)
    return request.isSafe || !error.maybeReceived ? 100 + backoffMs : undefined;
  if (!(error instanceof ApiError)) return undefined;
  const retryAfterMs = (error.retryAfterSeconds ?? 0) * 1000;
  if (isRefusedForNow(error)) return Math.max(1000, retryAfterMs) + random() * jitterMsMax;
  if (!request.isSafe && !(request.isUnique === true && error.status === 503)) return undefined;
  if (passing.has(error.status)) return Math.max(100, retryAfterMs) + backoffMs;
  if (error.status >= 500 && request.attempts < brokenAttemptsMax) return 100 + backoffMs;
  return undefined;
}
