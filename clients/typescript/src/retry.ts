/**
 * Whether and when a request is sent again. `Retry-After` is a lower bound. Jitter goes on top, so that clients that were
 * given the same moment do not come back together. Without it: exponential backoff with full jitter
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * A request that is not safe to repeat is sent again only when the service certainly did not carry it out: the service
 * refused it for its rate or concurrency (429), or no connection was made. A request that can succeed only once is sent
 * again after 503 too, because the service mostly says 503 before it does anything.
 */
import { ApiError, ConnectionError, type RequestError } from './errors.ts';

const backoffMsBase = 500;
const backoffMsMax = 30_000;
const jitterMsMax = 1_000;
const retryMsMaxDefault = 120_000;
const unreachedMsMaxDefault = 5_000;
/** The deadline of an upsert in the service (`MAXSIMD_TIMEOUT_UPSERT_MS`), by default. */
export const upsertDeadlineMs = 120_000;
/** For a request that the service fails on (500). More attempts would hardly help. */
const brokenAttemptsMax = 3;
const passing = new Set([408, 502, 503, 504]);

export interface RetryBounds {
  readonly retryMsMax: number | undefined;
  readonly unreachedMsMax: number | undefined;
}

/**
 * For all attempts of a request together. An address where nobody ever answered is most likely wrong. The next attempt
 * may take as long as the last one, and must end within the bound.
 */
export function repeatMsMax(
  { retryMsMax, unreachedMsMax }: RetryBounds,
  state: { readonly wasConnected: boolean; readonly attemptMs: number },
): number {
  if (state.wasConnected) return retryMsMax ?? retryMsMaxDefault;
  return (unreachedMsMax ?? retryMsMax ?? unreachedMsMaxDefault) - state.attemptMs;
}

/** The service is well, and asks the tenant to wait. */
export function isRefusedForNow(error: RequestError): boolean {
  return error instanceof ApiError && error.status === 429 && error.code !== 'usage_limit_exceeded';
}

/** The service fails on this request. Another attempt may help, or not. */
export function isBroken(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 500 && !passing.has(error.status);
}

/**
 * An attempt that came to nothing after more than `lateAfterMs`. The service is too slow for this request, so the same request
 * again would most likely end the same way.
 */
export class LateError extends Error {
  override readonly cause: RequestError;

  constructor(cause: RequestError) {
    super(cause.message, { cause });
    this.cause = cause;
  }
}

/** Whether the failure of an attempt tells of a slow service, if it came late enough. */
export function maybeSlow(error: RequestError): boolean {
  return error instanceof ApiError ? passing.has(error.status) : error.code === 'timeout';
}

/** Failed attempts of a request, so far. */
export interface Failures {
  readonly attempts: number;
  /** Attempts that ended with `isBroken`. */
  readonly broken: number;
  readonly isSafe: boolean;
  readonly isUnique?: boolean;
}

/** Milliseconds before the next attempt; `undefined` = give up. `random` is uniform in [0, 1). */
export function repeatDelayMs(
  error: RequestError,
  failures: Failures,
  random: () => number,
): number | undefined {
  const { attempts, broken, isSafe, isUnique = false } = failures;
  const backoffMs = random() * Math.min(backoffMsMax, backoffMsBase * 2 ** Math.min(attempts - 1, 16));
  if (error instanceof ConnectionError) return isSafe || !error.maybeReceived ? 100 + backoffMs : undefined;
  const retryAfterMs = (error.retryAfterSeconds ?? 0) * 1000;
  if (isRefusedForNow(error)) return Math.max(1000, retryAfterMs) + random() * jitterMsMax;
  if (!isSafe && !(isUnique && error.status === 503)) return undefined;
  if (passing.has(error.status)) return Math.max(100, retryAfterMs) + backoffMs;
  return isBroken(error) && broken < brokenAttemptsMax ? 100 + backoffMs : undefined;
}
