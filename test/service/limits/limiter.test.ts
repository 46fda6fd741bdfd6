import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryLimiter } from '../../../src/service/limits/memory-limiter.ts';
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
    // Each admission drops up to two idle tenants, so half as many admissions drop all of them.
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
      limiter.reserveTokens({ ...reservation, tenantId: `${tenant}` })?.release();
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
});

describe('the rate windows after a restart', () => {
  const start = 1_800_000_000_000;
  const windowMs = 60_000;

  /** The limiter of the next process, with the recorded windows of a tenant. */
  const restored = (nowMs: number, ...packed: readonly (Uint8Array | undefined)[]) => {
    const recorded = packed.filter((window) => window !== undefined);
    return MemoryLimiter.restore(
      { rateWindows: async () => recorded.map((window) => ({ tenantId: 't', packed: window })) },
      nowMs,
    );
  };

  it('hold what was recorded, of any number of admissions in at most 252 bytes', async () => {
    for (const admissions of [1, 59, 60, 61, 1000, 12_345]) {
      const limiter = new MemoryLimiter();
      for (let request = 0; request < admissions; request++) {
        limiter.admitRate('t', admissions, start + (request * 30_000) / admissions);
      }
      const packed = limiter.packedWindow('t');
      expect(packed?.length).toBeLessThanOrEqual(252);
      const next = await restored(start + 40_000, packed);
      expect(next.admitRate('t', admissions, start + 40_000)).toMatchObject({ admitted: false });
      // At most a sixtieth of them leaves together.
      expect(next.admitRate('t', admissions + 1, start + 40_000)).toMatchObject({
        admitted: true,
        remaining: 0,
      });
      expect(next.admitRate('t', admissions + 1, start + 30_000 / 59 + windowMs + 1).admitted).toBe(true);
      expect((await restored(start + 30_000 + windowMs, packed)).size).toBe(0);
    }
  });

  it('are those that were recorded last', async () => {
    const limiter = new MemoryLimiter();
    const packed = [0, 1, 2].map((second) => {
      limiter.admitRate('t', 3, start + second * 1000);
      return limiter.packedWindow('t');
    });
    const next = await restored(start + 5000, packed[1], packed[2], packed[0]);
    expect(next.admitRate('t', 3, start + 5000)).toMatchObject({ admitted: false, retryAfterSeconds: 55 });
  });

  it('count as of now when the clock has stepped back', async () => {
    const limiter = new MemoryLimiter();
    limiter.admitRate('t', 1, start);
    const next = await restored(start - 3_600_000, limiter.packedWindow('t'));
    expect(next.admitRate('t', 1, start - 3_600_000)).toMatchObject({
      admitted: false,
      retryAfterSeconds: 60,
    });
  });

  it('are empty when the recorded bytes are no window', async () => {
    for (const bytes of [0, 5, 12, 16, 300]) {
      const next = await restored(start, new Uint8Array(bytes).fill(0xff));
      expect(next.size).toBe(0);
    }
  });

  it('never let more than the limit into any 60 s, however often the process is started', async () => {
    const step = fc.record({
      gapMs: fc.double({ min: 0, max: 4000, noNaN: true }),
      restart: fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
    });
    const history = fc.record({
      limit: fc.integer({ min: 1, max: 100 }),
      steps: fc.array(step, { maxLength: 300 }),
    });
    await fc.assert(
      fc.asyncProperty(history, async ({ limit, steps }) => {
        let limiter = new MemoryLimiter();
        let packed: Uint8Array | undefined;
        const admitted: number[] = [];
        let now = start;
        for (const { gapMs, restart } of steps) {
          now += gapMs;
          if (restart) limiter = await restored(now, packed);
          if (!limiter.admitRate('t', limit, now).admitted) continue;
          expect(admitted.filter((time) => time > now - windowMs).length).toBeLessThan(limit);
          admitted.push(now);
          packed = limiter.packedWindow('t');
        }
      }),
      { numRuns: 100 },
    );
  });
});
