import { describe, expect, it } from 'vitest';
import type { Tenant, UsageTotals } from '../../../src/catalog/contract.ts';
import { ServiceError } from '../../../src/errors.ts';
import { MemoryLimiter } from '../../../src/service/limits/memory-limiter.ts';
import { TokenAllowance, tokenAllowanceExceeded } from '../../../src/service/limits/token-allowance.ts';
import { unlimitedAllowances } from '../../../src/service/limits/unlimited.ts';

const day = 86_400_000;

function tenantWith(inputTokens: bigint, id = 'tenant'): Tenant {
  return {
    id,
    name: 'tenant',
    suspended: false,
    limits: { requestsPerMinute: 60, maxConcurrentRequests: 2, inputTokens, documents: 10 },
    createdAtMs: 0,
  };
}

function allowanceWith(ledger: Map<string, bigint>, now = { ms: Date.UTC(2026, 0, 31) }) {
  return new TokenAllowance({
    limiter: new MemoryLimiter(),
    usageTotals: async (_tenantId, month): Promise<UsageTotals> => ({
      inputTokens: ledger.get(month) ?? 0n,
      requests: 0,
      documentUpserts: 0,
      searches: 0,
      scores: 0,
      documents: 0,
    }),
    nowMs: () => now.ms,
  });
}

describe('the monthly allowance', () => {
  it('refuses exactly the request that would exceed it, until the month ends', async () => {
    const allowance = allowanceWith(new Map([['2026-01', 90n]]));
    const hold = await allowance.open(tenantWith(100n));
    hold.reserve(10n);
    const other = await allowance.open(tenantWith(100n));
    const refusal = (() => {
      try {
        return other.reserve(1n);
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toBeInstanceOf(ServiceError);
    expect(refusal).toMatchObject({ code: 'usage_limit_exceeded', retryAfterSeconds: day / 1000 });
    expect((refusal as Error).message).toBe(
      'the tenant may use 100 input tokens a month, and what is left does not hold this request. An operator raises ' +
        "the limit with: npx maxsimd tenant limits 'tenant' --input-tokens 50000000",
    );
    hold.settle(4n);
    expect(other.remaining).toBe(6n);
    expect(other.tryReserve(7n)).toBe(false);
    expect(other.tryReserve(6n)).toBe(true);
  });

  it('names no more than the catalog can hold', () => {
    const message = (inputTokens: bigint) => tokenAllowanceExceeded(tenantWith(inputTokens), 0).message;
    expect(message(60_000_000n)).toMatch(/--input-tokens 600000000$/);
    expect(message(2n ** 62n)).toMatch(/--input-tokens 9223372036854775807$/);
  });

  it('that does not limit holds every request, and what is left is exact', async () => {
    const { inputTokens } = unlimitedAllowances;
    const allowance = allowanceWith(new Map([['2026-01', 2n ** 53n + 1n]]));
    const hold = await allowance.open(tenantWith(inputTokens));
    expect(hold.remaining).toBe(inputTokens - 2n ** 53n - 1n);
    expect(hold.tryReserve(2n ** 62n)).toBe(true);
    hold.settle(3n);
    expect((await allowance.open(tenantWith(inputTokens))).remaining).toBe(inputTokens - 2n ** 53n - 4n);
  });

  it('starts afresh with the month, and charges a request to the month it began in', async () => {
    const now = { ms: Date.UTC(2026, 0, 31, 23, 59) };
    const allowance = allowanceWith(new Map([['2026-01', 99n]]), now);
    const old = await allowance.open(tenantWith(100n));
    old.reserve(1n);
    now.ms = Date.UTC(2026, 1, 1);
    const fresh = await allowance.open(tenantWith(100n));
    expect(fresh.month).toBe('2026-02');
    fresh.reserve(100n);
    old.settle(1n);
    expect([old.month, fresh.remaining]).toEqual(['2026-01', 100n]);
  });

  it('forgets most of ten thousand tenants, but none with a request in flight', async () => {
    const ledger = new Map<string, bigint>();
    const allowance = allowanceWith(ledger);
    const inFlight = await allowance.open(tenantWith(100n, 'in flight'));
    inFlight.reserve(60n);
    for (let number = 0; number < 10_000; number += 1) {
      (await allowance.open(tenantWith(100n, `tenant ${number}`))).release();
    }
    expect(allowance.size).toBe(1_000);
    const other = await allowance.open(tenantWith(100n, 'in flight'));
    inFlight.settle(60n);
    expect(other.remaining).toBe(40n);
    // A tenant that was forgotten is read again.
    ledger.set('2026-01', 99n);
    expect((await allowance.open(tenantWith(100n, 'tenant 1'))).remaining).toBe(1n);
    expect((await allowance.open(tenantWith(100n, 'tenant 9999'))).remaining).toBe(100n);
  });
});
