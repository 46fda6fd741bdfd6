/**
 * When to try again. `Retry-After` is a lower bound; jitter goes on top, so that clients given the same
 * moment do not come back in one. Without it, exponential backoff with full jitter
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * A tenant over its request rate or its concurrency hears so from a healthy service: waiting has no end.
 * An unavailable service (503, no connection, no answer) is given `unavailableMsMax`, a request that the
 * service breaks on (500) `brokenAttemptsMax` attempts, everything else none. An address where nobody ever answered is
 * most likely wrong: it is given `unconnectedMsMax` in all.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiFailure, type ApiFailureKind } from './failure.ts';

export interface RetryPolicy {
  readonly unavailableMsMax: number;
  /** 5 s where none is given, and never more than `unavailableMsMax`. */
  readonly unconnectedMsMax?: number | undefined;
  readonly brokenAttemptsMax: number;
}

const backoffMsBase = 500;
const backoffMsMax = 30_000;
const jitterMsMax = 1_000;
const unconnectedMsDefault = 5_000;

/** The unbroken row of failures of one kind that ends with the present one. */
export interface FailureRow {
  readonly attempts: number;
  /** Since the first of them. */
  readonly elapsedMs: number;
  /** Since the request began and, once more, for the last attempt, if nothing was ever connected. */
  readonly unconnectedMs?: number | undefined;
}

export type OnWait = (failure: ApiFailure, delayMs: number) => void;

/** Milliseconds to wait before the next attempt; `undefined` = give up. `random` is uniform in [0, 1). */
export function retryDelayMs(
  failure: ApiFailure,
  row: FailureRow,
  policy: RetryPolicy,
  random: () => number,
): number | undefined {
  const retryAfterMs = (failure.retryAfterSeconds ?? 0) * 1000;
  const backoffMs = random() * Math.min(backoffMsMax, backoffMsBase * 2 ** Math.min(row.attempts - 1, 16));
  switch (failure.kind) {
    case 'rate_limited':
    case 'concurrency_limited':
      return Math.max(1000, retryAfterMs) + random() * jitterMsMax;
    case 'unavailable': {
      const delayMs = Math.max(retryAfterMs, 100) + backoffMs;
      if (row.elapsedMs >= policy.unavailableMsMax) return undefined;
      const unconnectedMsMax = policy.unconnectedMsMax ?? unconnectedMsDefault;
      return row.unconnectedMs !== undefined && row.unconnectedMs + delayMs > unconnectedMsMax
        ? undefined
        : delayMs;
    }
    case 'broken':
      return row.attempts >= policy.brokenAttemptsMax ? undefined : 100 + backoffMs;
    default:
      return undefined;
  }
}

export interface RetryingOptions {
  readonly policy: RetryPolicy;
  /** Called before each wait. */
  readonly onWait?: OnWait | undefined;
}

/**
 * Repeats attempts by the rules above. Attempts of one instance share the pause of a `rate_limited` answer:
 * the window is the tenant's, so the others would only be refused too.
 */
export class Retrying {
  readonly #policy: RetryPolicy;
  readonly #onWait: RetryingOptions['onWait'];
  #pausedUntilMs = 0;
  #wasConnected = false;

  constructor(options: RetryingOptions) {
    this.#policy = options.policy;
    this.#onWait = options.onWait;
  }

  async run<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const startedMs = performance.now();
    let row: { kind: ApiFailureKind; attempts: number; sinceMs: number } | undefined;
    for (;;) {
      await this.#waitForPause(signal);
      const attemptedMs = performance.now();
      try {
        const value = await attempt();
        this.#wasConnected = true;
        return value;
      } catch (error) {
        if (!(error instanceof ApiFailure)) throw error;
        this.#wasConnected ||= !error.isUnconnected;
        const nowMs = performance.now();
        if (row?.kind !== error.kind) row = { kind: error.kind, attempts: 0, sinceMs: nowMs };
        row.attempts += 1;
        const rowSoFar = {
          attempts: row.attempts,
          elapsedMs: nowMs - row.sinceMs,
          // The next attempt may take as long.
          unconnectedMs: this.#wasConnected ? undefined : nowMs - startedMs + (nowMs - attemptedMs),
        };
        const delayMs = retryDelayMs(error, rowSoFar, this.#policy, Math.random);
        if (delayMs === undefined) throw error;
        this.#onWait?.(error, delayMs);
        if (error.kind === 'rate_limited')
          this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + delayMs);
        else await sleep(delayMs, undefined, { signal });
      }
    }
  }

  async #waitForPause(signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const remainingMs = this.#pausedUntilMs - performance.now();
      if (remainingMs <= 0) return;
      await sleep(remainingMs, undefined, { signal });
    }
  }
}
