import { describe, expect, it } from 'vitest';
import { ApiFailure, kindOf, type ApiFailureKind } from '../../src/cli/api/failure.ts';
import { retryDelayMs, Retrying } from '../../src/cli/api/retry.ts';
import { Parallelism } from '../../src/cli/import/run.ts';

const policy = { unavailableMsMax: 60_000, brokenAttemptsMax: 3 };
const failure = (kind: ApiFailureKind, retryAfterSeconds?: number): ApiFailure =>
  new ApiFailure('no', {
    kind,
    code: kind,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
const low = (): number => 0;
const high = (): number => 0.999_999;

describe('what an answer means', () => {
  it.each([
    [429, 'rate_limit_exceeded', 'rate_limited'],
    [429, 'concurrency_limit_exceeded', 'concurrency_limited'],
    [429, 'usage_limit_exceeded', 'final'],
    [503, 'service_unavailable', 'unavailable'],
    [502, 'unexpected_response', 'unavailable'],
    [500, 'internal_error', 'broken'],
    [422, 'validation_error', 'final'],
    [401, 'authentication_failed', 'final'],
    [403, 'tenant_suspended', 'final'],
    [302, 'unexpected_response', 'final'],
  ] as const)('%i %s is %s', (status, code, kind) => {
    expect(kindOf(status, code)).toBe(kind);
  });
});

describe('the wait before the next attempt', () => {
  it('is at least Retry-After, with jitter on top', () => {
    for (const kind of ['rate_limited', 'concurrency_limited', 'unavailable'] as const) {
      const row = { attempts: 1, elapsedMs: 0 };
      expect(retryDelayMs(failure(kind, 7), row, policy, low)).toBeGreaterThanOrEqual(7000);
      expect(retryDelayMs(failure(kind, 7), row, policy, high)).toBeGreaterThan(7400);
      expect(retryDelayMs(failure(kind, 7), row, policy, high)).toBeLessThan(8100);
    }
  });

  it('never ends for a rate or concurrency limit', () => {
    const row = { attempts: 10_000, elapsedMs: 10 ** 9 };
    expect(retryDelayMs(failure('rate_limited', 1), row, policy, low)).toBe(1000);
    expect(retryDelayMs(failure('concurrency_limited', 1), row, policy, low)).toBe(1000);
  });

  it('doubles without Retry-After up to a bound, and ends when the service stays away', () => {
    const delays = [1, 2, 3, 20].map((attempts) =>
      retryDelayMs(failure('unavailable'), { attempts, elapsedMs: 0 }, policy, high),
    );
    expect(delays.map((delay) => Math.round(delay ?? 0))).toEqual([600, 1100, 2100, 30_100]);
    expect(
      retryDelayMs(failure('unavailable'), { attempts: 5, elapsedMs: 60_000 }, policy, low),
    ).toBeUndefined();
  });

  it('ends within 5 s, or as long as was asked for, while the service was never reached', () => {
    const unreached = (unconnectedMs: number, more: object = {}): number | undefined =>
      retryDelayMs(
        failure('unavailable'),
        { attempts: 1, elapsedMs: 0, unconnectedMs },
        { ...policy, ...more },
        low,
      );
    expect(unreached(4_900)).toBe(100);
    expect(unreached(4_901)).toBeUndefined();
    expect(unreached(59_000, { unconnectedMsMax: 60_000 })).toBe(100);
    expect(unreached(0, { unavailableMsMax: 0 })).toBeUndefined();
  });

  it('ends after a few attempts at a request the service breaks on, at once for a refused one', () => {
    expect(retryDelayMs(failure('broken'), { attempts: 2, elapsedMs: 0 }, policy, low)).toBeDefined();
    expect(retryDelayMs(failure('broken'), { attempts: 3, elapsedMs: 0 }, policy, low)).toBeUndefined();
    expect(retryDelayMs(failure('final'), { attempts: 1, elapsedMs: 0 }, policy, low)).toBeUndefined();
  });
});

describe('retrying', () => {
  it('counts attempts of one kind in a row: limits in between do not use up the attempts of a 500', async () => {
    const script: ApiFailureKind[] = ['broken', 'concurrency_limited', 'broken', 'unavailable', 'broken'];
    const retrying = new Retrying({ policy: { unavailableMsMax: 60_000, brokenAttemptsMax: 2 } });
    const value = await retrying.run(async () => {
      const kind = script.shift();
      if (kind !== undefined) throw failure(kind);
      return 'done';
    });
    expect(value).toBe('done');
  });

  it('stops waiting when the caller gives up', async () => {
    const abort = new AbortController();
    const retrying = new Retrying({ policy, onWait: () => abort.abort(new Error('gave up')) });
    const attempt = retrying.run(() => Promise.reject(failure('rate_limited', 3600)), abort.signal);
    await expect(attempt).rejects.toThrow(/aborted/);
  });
});

describe('parallelism', () => {
  it('goes down with each refusal, never below one, and comes back up to what was asked', () => {
    const parallelism = new Parallelism(3);
    for (let refusals = 0; refusals < 5; refusals += 1) parallelism.refused();
    expect(parallelism.current).toBe(1);
    for (let successes = 0; successes < 100; successes += 1) parallelism.succeeded();
    expect(parallelism.current).toBe(3);
  });
});
