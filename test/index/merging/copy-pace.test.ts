/** Merges and verification wait so that they copy and read no faster than they may. */
import { describe, expect, it } from 'vitest';
import { CopyPace } from '../../../src/index/merging/copy-pace.ts';
import { hangMs } from '../../support/running/eventually.ts';

/** Milliseconds that batches of 10 kB took at 1 MB/s. */
async function timed(pace: CopyPace, batches: number, haste: number): Promise<number> {
  const start = performance.now();
  for (let batch = 0; batch < batches; batch += 1) await pace.spend(10_000, haste);
  return performance.now() - start;
}

describe('a pace', () => {
  it('holds for all that copy together', async () => {
    const pace = new CopyPace(1_000_000);
    const start = performance.now();
    await Promise.all([timed(pace, 5, 1), timed(pace, 5, 1)]);
    expect(performance.now() - start).toBeGreaterThanOrEqual(95);
  });

  it('is multiplied by haste, for merges that are behind', async () => {
    const pace = new CopyPace(1_000_000);
    expect(await timed(pace, 10, 1)).toBeGreaterThanOrEqual(95);
    const hasty = new CopyPace(1_000);
    // At this pace it would take ten thousand seconds.
    expect(await timed(hasty, 1_000, 1e7)).toBeLessThan(hangMs);
  });

  it('can be cut short', async () => {
    const pace = new CopyPace(1);
    await expect(pace.spend(1_000_000, 1, AbortSignal.abort())).rejects.toThrow(/aborted/);
  });

  it('without a bound waits for nothing', async () => {
    const pace = new CopyPace(Infinity);
    await expect(pace.spend(1e300, 1, AbortSignal.abort())).resolves.toBeUndefined();
  });
});
