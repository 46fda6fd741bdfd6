import { describe, expect, it } from 'vitest';
import { MemoryLimiter } from '../../src/service/memory-limiter.ts';
import { describeLimiter } from './limiter-conformance.ts';

describeLimiter('in memory', () => new MemoryLimiter());

describe('the memory of the limiter', () => {
  it('is that of the tenants of the last minute', () => {
    const limiter = new MemoryLimiter();
    let now = 0;
    for (let tenant = 0; tenant < 5000; tenant++) {
      now += 10;
      limiter.admitRate(`tenant ${tenant}`, 60, now);
    }
    expect(limiter.size).toBe(5000);
    // Each admission drops up to two idle tenants: half as many again see all of them gone.
    for (let request = 0; request < 2600; request++) {
      now += 100;
      limiter.admitRate('busy', 1000, now);
    }
    expect(limiter.size).toBe(1);
  });

  it('holds nothing for requests and reservations that have ended', () => {
    const limiter = new MemoryLimiter();
    const reservation = { month: '2026-10', inputTokens: 5n, allowance: 5n, ledger: 0n };
    for (let tenant = 0; tenant < 100; tenant++) {
      limiter.acquireSlot(`${tenant}`, 1)?.release();
      limiter.reserveTokens({ ...reservation, tenantId: `${tenant}` })?.settle(5n);
      limiter.admitRate(`${tenant}`, 0, 0);
    }
    expect(limiter.size).toBe(0);
  });

  it('keeps exact time through growing and shrinking', () => {
    const limiter = new MemoryLimiter();
    const admitted: number[] = [];
    let now = 0;
    const limit = 500;
    for (const gap of [10, 2000, 5, 700, 1]) {
      for (let request = 0; request < 1500; request++) {
        now += gap;
        const fits = admitted.filter((time) => time > now - 60_000).length < limit;
        expect(limiter.admitRate('t', limit, now).admitted).toBe(fits);
        if (fits) admitted.push(now);
      }
    }
  });

  it('refuses to settle more than was reserved: that is a bug', () => {
    const request = { tenantId: 't', month: '2026-10', inputTokens: 5n, allowance: 5n, ledger: 0n };
    expect(() => new MemoryLimiter().reserveTokens(request)?.settle(6n)).toThrow(/bug/);
  });
});
