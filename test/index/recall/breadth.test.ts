/** How the breadth of an index moves, and that it comes to where the recall is in the band. */
import { describe, expect, it } from 'vitest';
import { breadthMax, breadthMin, nextBreadth, safeBreadth } from '../../../src/index/recall/breadth.ts';
import { announceRandom } from '../../support/running/random.ts';
import { simulated } from './simulated-index.ts';

const target = 0.98;
const estimate = (mean: number, low: number, high = (1 + mean) / 2) => ({ mean, low, high });

describe('the breadth', () => {
  it.each([
    ['stays at the lower end of the band', 1, estimate(0.98, 0.97), 1],
    ['stays at the upper end of the band', 1, estimate(0.99, 0.985), 1],
    ['goes up below the band', 1, estimate(0.97, 0.95), Math.SQRT2],
    ['goes up by a step however little is missing', 1, estimate(0.9799, 0.97), Math.SQRT2],
    ['goes up at most twofold', 1, estimate(0.5, 0.4), 2],
    ['stays below the band while the recall may be above it', 1, estimate(0.97, 0.9, 0.991), 1],
    ['goes down by a step above the band', 1, estimate(0.995, 0.99), Math.SQRT1_2],
    ['goes down by a step where nothing is missed', 1, estimate(1, 0.985), Math.SQRT1_2],
    ['comes to a step from what an earlier release chose', 1.1, estimate(0.97, 0.95), Math.SQRT2],
    ['stays above the band while the recall may be below the target', 1, estimate(1, 0.97), 1],
    ['goes no further up than its bound', breadthMax, estimate(0.5, 0.4), breadthMax],
    ['stays at the smallest where that finds more than it must', breadthMin, estimate(1, 0.999), breadthMin],
  ])('%s', (_what, breadth, found, next) => {
    expect(nextBreadth(breadth, found, target)).toBeCloseTo(next);
  });

  it('follows another target', () => {
    expect(nextBreadth(1, estimate(0.92, 0.91), 0.9)).toBe(1);
    expect(nextBreadth(1, estimate(0.98, 0.97), 0.9)).toBeLessThan(1);
  });
});

describe('within 600 measured searches, from any start', () => {
  const starts = [breadthMin, 0.7, safeBreadth, breadthMax];
  const steepnesses = [0.6, 1, 1.5];
  const cases = starts.flatMap((start) => steepnesses.map((steepness) => ({ start, steepness })));

  it.each(cases)('the recall is in the band without noise: from $start, $steepness', async (curve) => {
    for (const missedAtOne of [0.008, 0.015, 0.025]) {
      const index = await simulated({ ...curve, missedAtOne, hardShare: 0 }, 600);
      expect(index.recall).toBeGreaterThanOrEqual(0.98);
      expect(index.recall).toBeLessThanOrEqual(0.99);
    }
  });

  it.each([1, 0.3, 0.1])(
    'the recall is in the band mostly, and always near it, where only %d of the searches miss anything',
    async (hardShare) => {
      const random = announceRandom('breadth with noise');
      const recalls: number[] = [];
      for (let round = 0; round < 5; round += 1) {
        for (const curve of cases) {
          const missedAtOne = 0.008 + 0.017 * random.next();
          const { recall } = await simulated(
            { ...curve, missedAtOne, hardShare, random: () => random.next() },
            600,
          );
          recalls.push(recall);
          expect(recall).toBeGreaterThan(0.95);
          expect(recall).toBeLessThan(0.997);
        }
      }
      const inBand = recalls.filter((recall) => recall >= 0.98 && recall <= 0.99);
      expect(inBand.length / recalls.length).toBeGreaterThan(0.75);
    },
  );

  it('the recall comes back after the texts have changed under the same codebook', async () => {
    const random = announceRandom('breadth after a change');
    const curve = { start: safeBreadth, steepness: 1, hardShare: 0.3, random: () => random.next() };
    const index = await simulated({ ...curve, missedAtOne: 0.006 }, 600);
    await index.change(0.035);
    expect(index.recall).toBeLessThan(0.97);
    await index.measure(600);
    expect(index.recall).toBeGreaterThan(0.97);
    expect(index.recall).toBeLessThan(0.995);
  });
});
