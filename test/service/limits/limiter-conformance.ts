/** The conformance suite of limiters. Times are given, so that nothing here waits. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Limiter, TokenReservation } from '../../../src/service/limits/limiter.ts';

const windowMs = 60_000;
const month = '2026-10';

/** Makes a fresh limiter. */
type Start = () => Limiter | Promise<Limiter>;

export function describeLimiter(name: string, start: Start): void {
  describe(`limiter conformance: ${name}`, () => {
    describeRate(start);
    describeSlots(start);
    describeReservations(start);
  });
}

function describeRate(start: Start): void {
  describe('the request rate', () => {
    it('admits as many as the limit, then refuses until the first leaves the window', async () => {
      const limiter = await start();
      for (const at of [0, 1, 2]) {
        expect(await limiter.admitRate('t', 3, 1000 * at)).toMatchObject({ remaining: 2 - at });
      }
      expect(await limiter.admitRate('t', 3, 3000)).toEqual({
        admitted: false,
        remaining: 0,
        retryAfterSeconds: 57,
      });
      expect(await limiter.admitRate('t', 3, 59_999)).toMatchObject({
        admitted: false,
        retryAfterSeconds: 1,
      });
      expect(await limiter.admitRate('t', 3, 60_000)).toMatchObject({ admitted: true, remaining: 0 });
      expect(await limiter.admitRate('t', 3, 60_000)).toMatchObject({
        admitted: false,
        retryAfterSeconds: 1,
      });
    });

    it('says of an admitted request when the window is empty again', async () => {
      expect(await (await start()).admitRate('t', 3, 5)).toEqual({
        admitted: true,
        remaining: 2,
        retryAfterSeconds: 60,
      });
    });

    it('is counted for each tenant by itself', async () => {
      const limiter = await start();
      expect((await limiter.admitRate('one', 1, 0)).admitted).toBe(true);
      expect((await limiter.admitRate('two', 1, 0)).admitted).toBe(true);
      expect((await limiter.admitRate('one', 1, 0)).admitted).toBe(false);
    });

    it('is counted for each key by itself, within that of its tenant', async () => {
      const limiter = await start();
      const admit = (keyId: string, perMinute: number, at: number) =>
        limiter.admitRate('t', 3, at, { keyId, perMinute });
      // The figures are those of the limit that has less left.
      expect(await admit('a', 1, 0)).toEqual({
        admitted: true,
        remaining: 0,
        retryAfterSeconds: 60,
        isOfKey: true,
      });
      expect(await admit('a', 1, 1000)).toEqual({
        admitted: false,
        remaining: 0,
        retryAfterSeconds: 59,
        isOfKey: true,
      });
      // The tenant has two left: the refusal took none.
      expect(await admit('b', 9, 2000)).toEqual({ admitted: true, remaining: 1, retryAfterSeconds: 60 });
      expect(await limiter.admitRate('t', 3, 2000)).toMatchObject({ admitted: true, remaining: 0 });
      expect(await admit('b', 9, 3000)).toEqual({ admitted: false, remaining: 0, retryAfterSeconds: 57 });
      // Nor did the tenant's refusal take one of the key.
      expect(await admit('b', 2, 60_000)).toMatchObject({ admitted: true, remaining: 0 });
    });

    it('of key and tenant names the limit that refuses for longer', async () => {
      const limiter = await start();
      const key = { keyId: 'a', perMinute: 1 };
      await limiter.admitRate('t', 2, 0);
      await limiter.admitRate('t', 2, 10_000, key);
      // The tenant admits again at 60 s, the key at 70 s.
      const refused = await limiter.admitRate('t', 2, 20_000, key);
      expect(refused).toEqual({ admitted: false, remaining: 0, retryAfterSeconds: 50, isOfKey: true });
      expect(await limiter.admitRate('t', 2, 20_000)).toMatchObject({ retryAfterSeconds: 40 });
    });

    it('follows a limit that is changed while it runs', async () => {
      const limiter = await start();
      for (let at = 0; at < 10; at++) await limiter.admitRate('t', 10, at * 1000);
      // Six of ten must leave before a fifth fits: the one of second 5 does so at second 65.
      expect(await limiter.admitRate('t', 5, 10_000)).toMatchObject({
        admitted: false,
        retryAfterSeconds: 55,
      });
      expect(await limiter.admitRate('t', 12, 10_000)).toMatchObject({ admitted: true, remaining: 1 });
      expect((await limiter.admitRate('t', 0, 10_000)).admitted).toBe(false);
    });

    it('forgets after any silence', async () => {
      for (const silence of [windowMs, 2 ** 31, 2 ** 32, 2 ** 32 + 10, 2 ** 40]) {
        const limiter = await start();
        const began = 1_800_000_000_000;
        await limiter.admitRate('t', 1, began);
        expect((await limiter.admitRate('t', 1, began + silence)).admitted, String(silence)).toBe(true);
      }
    });

    it('never lets more than the limit into any 60 s, and Retry-After is when the next one fits', async () => {
      const request = fc.record({ gapMs: fc.double({ min: 0, max: 9000, noNaN: true }), tenant: fc.nat(2) });
      const history = fc.record({
        limit: fc.integer({ min: 1, max: 20 }),
        requests: fc.array(request, { maxLength: 300 }),
      });
      await fc.assert(
        fc.asyncProperty(history, async ({ limit, requests }) => {
          const limiter = await start();
          const admitted = new Map<number, number[]>();
          let now = 1_800_000_000_000;
          for (const { gapMs, tenant } of requests) {
            now += gapMs;
            const times = admitted.get(tenant) ?? [];
            admitted.set(tenant, times);
            const recent = times.filter((time) => time > now - windowMs);
            const result = await limiter.admitRate(`tenant ${tenant}`, limit, now);
            if (result.admitted) {
              expect(recent.length).toBeLessThan(limit);
              expect(result.remaining).toBeLessThanOrEqual(limit - recent.length - 1);
              times.push(now);
            } else {
              const fits = (recent.at(-limit) ?? 0) + windowMs;
              // Rounding to whole milliseconds may hold a request back for up to two.
              expect(fits).toBeGreaterThan(now - 2);
              expect(result.retryAfterSeconds).toBeGreaterThanOrEqual(Math.max(1, (fits - now) / 1000));
              expect(result.retryAfterSeconds).toBeLessThan((fits - now) / 1000 + 1.003);
            }
          }
        }),
        { numRuns: 300 },
      );
    });
  });
}

function describeSlots(start: Start): void {
  describe('concurrency slots', () => {
    it('are as many as the limit, and free again when released', async () => {
      const limiter = await start();
      const [first, second] = [await limiter.acquireSlot('t', 2), await limiter.acquireSlot('t', 2)];
      expect(second).toBeDefined();
      expect(await limiter.acquireSlot('t', 2)).toBeUndefined();
      expect(await limiter.acquireSlot('other', 2)).toBeDefined();
      first?.release();
      expect(await limiter.acquireSlot('t', 2)).toBeDefined();
      expect(await limiter.acquireSlot('t', 2)).toBeUndefined();
    });

    it('are released once, however often it is said', async () => {
      const limiter = await start();
      const permit = await limiter.acquireSlot('t', 2);
      await limiter.acquireSlot('t', 2);
      permit?.release();
      permit?.release();
      expect(await limiter.acquireSlot('t', 2)).toBeDefined();
      expect(await limiter.acquireSlot('t', 2)).toBeUndefined();
    });

    it('follow a limit that is lowered below what is taken', async () => {
      const limiter = await start();
      const permits = await Promise.all([1, 2, 3].map(async () => limiter.acquireSlot('t', 3)));
      expect(await limiter.acquireSlot('t', 1)).toBeUndefined();
      permits[0]?.release();
      permits[1]?.release();
      expect(await limiter.acquireSlot('t', 1)).toBeUndefined();
      permits[2]?.release();
      expect(await limiter.acquireSlot('t', 1)).toBeDefined();
      expect(await limiter.acquireSlot('zero', 0)).toBeUndefined();
    });
  });
}

function describeReservations(start: Start): void {
  const reserve = (limiter: Limiter, inputTokens: bigint, ledger = 0n, tenantId = 't') =>
    limiter.reserveTokens({ tenantId, month, inputTokens, allowance: 100n, ledger });

  describe('token reservations', () => {
    it('fit while ledger, reservations and request are within the allowance', async () => {
      const limiter = await start();
      expect(reserve(limiter, 60n, 10n)).toMatchObject({ inputTokens: 60n });
      expect(reserve(limiter, 31n, 10n)).toBeUndefined();
      expect(reserve(limiter, 30n, 10n)).toBeDefined();
      expect(reserve(limiter, 1n, 10n)).toBeUndefined();
      expect(reserve(limiter, 0n, 10n)).toBeDefined();
      expect(reserve(limiter, 100n, 0n, 'other')).toBeDefined();
    });

    it('belong to their month', async () => {
      const limiter = await start();
      expect(reserve(limiter, 100n)).toBeDefined();
      const next = { tenantId: 't', month: '2026-11', inputTokens: 100n, allowance: 100n, ledger: 0n };
      expect(limiter.reserveTokens(next)).toBeDefined();
    });

    it('give back what they hold when released', async () => {
      const limiter = await start();
      reserve(limiter, 60n)?.release();
      const used = reserve(limiter, 100n);
      used?.release();
      expect(reserve(limiter, 61n, 40n)).toBeUndefined();
      expect(reserve(limiter, 60n, 40n)).toBeDefined();
    });

    it('end once: what comes after releasing changes nothing', async () => {
      const limiter = await start();
      const [first] = [reserve(limiter, 50n), reserve(limiter, 50n)];
      first?.release();
      first?.release();
      expect(reserve(limiter, 1n, 50n)).toBeUndefined();
    });

    it('never let ledger and reservations together exceed the allowance', async () => {
      const command = fc.record({
        kind: fc.constantFrom('reserve', 'reserve', 'settle', 'release'),
        tokens: fc.bigInt({ min: 0n, max: 60n }),
        pick: fc.nat(20),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(command, { maxLength: 200 }), async (commands) => {
          const limiter = await start();
          let open: TokenReservation[] = [];
          let ledger = 0n;
          const held = () => open.reduce((total, { inputTokens }) => total + inputTokens, 0n);
          for (const { kind, tokens, pick } of commands) {
            const reservation = open[pick % Math.max(1, open.length)];
            if (kind === 'reserve') {
              const fits = ledger + held() + tokens <= 100n;
              const made = reserve(limiter, tokens, ledger);
              expect(made !== undefined).toBe(fits);
              if (made !== undefined) open.push(made);
            } else if (reservation !== undefined) {
              open = open.filter((candidate) => candidate !== reservation);
              if (kind === 'settle')
                ledger += tokens < reservation.inputTokens ? tokens : reservation.inputTokens;
              reservation.release();
            }
            expect(ledger + held()).toBeLessThanOrEqual(100n);
          }
        }),
      );
    });
  });
}
