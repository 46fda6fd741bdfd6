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
  it('counts comparisons with that very breadth alone', () => {
    expect(recallAt([], 1, 10)).toBeUndefined();
    expect(recallAt([compared(1, 2), compared(1, 0.5)], 1, 10)).toBeUndefined();
    // Most of the best was found before the breadth became half of that.
    const before = Array<Comparison>(200).fill(compared(0.8, 2));
    const since = Array<Comparison>(10).fill(compared(0.2, 1));
    expect(recallAt([...before, ...since], 1, 10)).toEqual(recallAt(since, 1, 10));
    expect(recallAt([...before, ...since], 1, 10)!.mean).toBeCloseTo(0.2);
  });

  it('counts comparisons with the index as it is now alone', () => {
    const before = Array.from({ length: 200 }, () => ({ ...compared(0.8), chunks: 1_000 }));
    const since = Array.from({ length: 10 }, () => ({ ...compared(0.2), chunks: 1_060 }));
    expect(recallAt([...before, ...since], 1, 10)).toEqual(recallAt(since, 1, 10));
    const nearby = since.map((one) => ({ ...one, chunks: 1_040 }));
    expect(recallAt([...before, ...nearby], 1, 10)!.mean).toBeGreaterThan(0.7);
  });

  it('is not certain where nothing was missed, and more so with more comparisons', () => {
    const lowOf = (count: number): number => recallAt(Array(count).fill(compared(1)), 1, 10)!.low;
    expect(lowOf(1)).toBeLessThan(0.4);
    expect(lowOf(25)).toBeLessThan(0.97);
    expect(lowOf(50)).toBeGreaterThan(0.98);
    expect(lowOf(50)).toBeLessThan(lowOf(300));
    expect(lowOf(300)).toBeLessThan(1);
  });

  const cases = [2, 5, 25, 100].flatMap((count) =>
    [0.1, 0.5, 0.9].flatMap((missed) => [false, true].map((together) => ({ count, missed, together }))),
  );
  it.each(cases)('of $count searches that miss $missed holds the truth (together: $together)', (one) => {
    const random = announceRandom('intervals of few searches');
    let held = 0;
    for (let trial = 0; trial < 1_000; trial += 1) {
      const comparisons = Array.from({ length: one.count }, () => {
        // A search finds all or nothing, or each of its results by its own chance.
        const all = random.next() >= one.missed;
        const found = Array.from({ length: 10 }, () => (one.together ? all : random.next() >= one.missed));
        return compared(found.filter(Boolean).length / 10);
      });
      const { low, high } = recallAt(comparisons, 1, 10)!;
      if (low <= 1 - one.missed && 1 - one.missed <= high) held += 1;
    }
    // No interval of few trials with two outcomes holds it exactly 95 times in a hundred.
    expect(held / 1_000).toBeGreaterThan(0.85);
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
