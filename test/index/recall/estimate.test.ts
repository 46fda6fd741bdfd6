/** Recall from comparisons, and where it lies with 95 percent confidence. */
import { describe, expect, it } from 'vitest';
import { foundShare, recallAt, type Comparison } from '../../../src/index/recall/estimate.ts';
import { announceRandom } from '../../support/running/random.ts';

const floats = (...scores: readonly number[]): Float32Array => Float32Array.from(scores);
const compared = (at10: number, breadth = 1): Comparison => ({ breadth, at10, at100: at10 });

describe('the share that was found', () => {
  it.each([
    ['all of the best', floats(9, 8, 7), floats(9, 8, 7), 3, 1],
    ['one missed', floats(9, 7, 6), floats(9, 8, 7), 3, 2 / 3],
    ['another of the same score as the last', floats(9, 8, 7, 7), floats(9, 8, 7), 3, 1],
    ['fewer than were asked for', floats(9, 8), floats(9, 8), 10, 1],
    ['fewer than there are', floats(9), floats(9, 8), 10, 1 / 2],
    ['nothing to find', floats(), floats(), 10, 1],
  ])('%s', (_what, found, exact, best, share) => {
    expect(foundShare(found, exact, best)).toBe(share);
  });
});

describe('an estimate', () => {
  it('needs a comparison with a breadth nearby', () => {
    expect(recallAt([], 1, 10)).toBeUndefined();
    expect(recallAt([compared(1, 4)], 1, 10)).toBeUndefined();
    expect(recallAt([compared(1, 2)], 1, 10)).toBeDefined();
  });

  it('takes misses to be in inverse proportion to the breadth', () => {
    expect(recallAt([compared(0.9, 2)], 1, 10)?.mean).toBeCloseTo(0.8);
    expect(recallAt([compared(0.9, 1)], 2, 10)?.mean).toBeCloseTo(0.95);
  });

  it('is not certain where nothing was missed, and more so with more comparisons', () => {
    const lowOf = (count: number): number => recallAt(Array(count).fill(compared(1)), 1, 10)!.low;
    expect(lowOf(1)).toBeLessThan(0.8);
    expect(lowOf(25)).toBeGreaterThan(0.98);
    expect(lowOf(25)).toBeLessThan(lowOf(300));
    expect(lowOf(300)).toBeLessThan(1);
  });

  it.each([
    ['alone', 1],
    ['ten at a time', 0.1],
  ])('holds the truth 95 times in a hundred when results are missed %s', (_how, hardShare) => {
    const random = announceRandom('intervals of recall');
    const missed = 0.02;
    let held = 0;
    for (let trial = 0; trial < 400; trial += 1) {
      const comparisons = Array.from({ length: 300 }, () => {
        const chance = random.next() < hardShare ? missed / hardShare : 0;
        return compared(
          Array.from({ length: 10 }, () => random.next() >= chance).filter(Boolean).length / 10,
        );
      });
      const { low, high } = recallAt(comparisons, 1, 10)!;
      if (low <= 1 - missed && 1 - missed <= high) held += 1;
    }
    expect(held / 400).toBeGreaterThan(0.9);
  });
});
