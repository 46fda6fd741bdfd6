import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SharedLock } from '../../../src/index/publishing/shared-lock.ts';

describe('shared lock', () => {
  it('lets many share it and one have it alone, in the order they came', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.boolean(), { maxLength: 20 }),
        fc.scheduler(),
        async (kinds, scheduler) => {
          const lock = new SharedLock();
          const begun: number[] = [];
          let sharing = 0;
          let alone = 0;
          const work = kinds.map((exclusive, place) =>
            exclusive
              ? lock.exclusive(async () => {
                  begun.push(place);
                  alone += 1;
                  expect([alone, sharing]).toEqual([1, 0]);
                  await scheduler.schedule(Promise.resolve());
                  alone -= 1;
                })
              : lock.shared(async () => {
                  begun.push(place);
                  sharing += 1;
                  expect(alone).toBe(0);
                  await scheduler.schedule(Promise.resolve());
                  sharing -= 1;
                }),
          );
          await scheduler.waitFor(Promise.all(work));
          expect(begun).toEqual(kinds.map((_kind, place) => place));
        },
      ),
    );
  });

  it('lets work that the holders wait for in first', async () => {
    const lock = new SharedLock();
    const awaited = Promise.withResolvers<void>();
    const order: string[] = [];
    await Promise.all([
      lock.shared(async () => {
        await awaited.promise;
        order.push('holder');
      }),
      lock.exclusive(async () => void order.push('alone')),
      lock.sharedFirst(async () => {
        order.push('first');
        awaited.resolve();
      }),
    ]);
    expect(order).toEqual(['first', 'holder', 'alone']);
  });

  it('is free again after work that failed', async () => {
    const lock = new SharedLock();
    await expect(lock.exclusive(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(await lock.shared(async () => 'entered')).toBe('entered');
  });
});
