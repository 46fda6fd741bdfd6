/** The merge policy alone, over simulated sizes: bound on segments, cost, and what the cap on a merge costs. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  liveTokenVectors,
  planMerge,
  type MergeableSegment,
  type MergeSettings,
} from '../../../src/index/merging/merge-policy.ts';

const sealTokenVectors = 131_072;
const bounds: MergeSettings = {
  sealedSegmentsMax: 8,
  mergeTokenVectorsMax: 128_000_000,
  segmentTokenVectorsMax: 1_000_000,
  wasteAgeMsMax: 1_000,
  nowMs: () => 0,
};
const at = (nowMs: number): MergeSettings => ({ ...bounds, nowMs: () => nowMs });
const bytesPerTokenVector = 130;

function segmentOf(
  id: number,
  tokenVectors: number,
  change: Partial<MergeableSegment> = {},
): MergeableSegment {
  return {
    id,
    records: 1_000,
    live: 1_000,
    tokenVectors,
    fileBytes: tokenVectors * bytesPerTokenVector,
    wasteSinceMs: undefined,
    unwritable: false,
    ...change,
  };
}

interface Simulated {
  readonly segments: readonly MergeableSegment[];
  readonly sealedMax: number;
  readonly rewritten: number;
  readonly largest: number;
}

/** Adds sealed segments of the given sizes. Merges catch up after each. */
function simulate(sizes: readonly number[], limits: MergeSettings = bounds): Simulated {
  let segments: MergeableSegment[] = [];
  let nextId = 1;
  let [sealedMax, rewritten, largest] = [0, 0, 0];
  for (const size of sizes) {
    segments.push(segmentOf(nextId++, size));
    for (let plan = planMerge(segments, limits); plan !== undefined; plan = planMerge(segments, limits)) {
      const { segmentIds } = plan;
      const merged = segments.filter(({ id }) => segmentIds.includes(id));
      const tokenVectors = merged.reduce((sum, segment) => sum + liveTokenVectors(segment), 0);
      rewritten += tokenVectors;
      largest = Math.max(largest, tokenVectors);
      segments = segments.filter(({ id }) => !segmentIds.includes(id));
      segments.push(segmentOf(nextId++, tokenVectors));
    }
    sealedMax = Math.max(sealedMax, segments.length);
  }
  return { segments, sealedMax, rewritten, largest };
}

const equalSeals = (count: number, size = sealTokenVectors) => Array<number>(count).fill(size);

describe('merging for number', () => {
  it.each([
    [64, 1.7],
    [256, 2.7],
    [488, 3],
    [1024, 4],
    [4096, 6.5],
  ])(
    'keeps %i equal seals within eight segments and rewrites a record %f times at most on average',
    (seals, most) => {
      const { sealedMax, rewritten } = simulate(equalSeals(seals), {
        ...bounds,
        mergeTokenVectorsMax: Infinity,
      });
      expect(sealedMax).toBe(8);
      expect(rewritten / (seals * sealTokenVectors)).toBeLessThan(most);
    },
  );

  it('keeps a million chunks, arriving in seals of 64 MiB, within eight segments', () => {
    const tokenVectors = 64_000_000;
    const seal = (64 * 1024 * 1024) / bytesPerTokenVector;
    const { sealedMax, segments } = simulate(equalSeals(Math.ceil(tokenVectors / seal), seal));
    expect(sealedMax).toBeLessThanOrEqual(8);
    expect(segments.reduce((sum, segment) => sum + segment.tokenVectors, 0)).toBeGreaterThanOrEqual(
      tokenVectors,
    );
  });

  it('holds its bound for seals of any sizes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: sealTokenVectors }), { minLength: 1, maxLength: 300 }),
        (sizes) => {
          const { sealedMax, segments, rewritten } = simulate(sizes);
          const total = sizes.reduce((sum, size) => sum + size, 0);
          expect(sealedMax).toBeLessThanOrEqual(8);
          expect(segments.reduce((sum, segment) => sum + segment.tokenVectors, 0)).toBeCloseTo(total, 3);
          // A merge at least doubles the size of a record's segment, unless that was the largest source.
          expect(rewritten / total).toBeLessThan(2 * Math.log2(sizes.length + 2));
        },
      ),
    );
  });

  it('merges nothing before the bound is passed', () => {
    expect(
      planMerge(
        equalSeals(8).map((size, id) => segmentOf(id + 1, size)),
        bounds,
      ),
    ).toBeUndefined();
  });

  it('leaves a large segment alone until as much has gathered beside it', () => {
    const segments = [100, 1, 1, 1, 1, 1, 1, 1, 1].map((size, place) => segmentOf(place + 1, size));
    expect(planMerge(segments, bounds)?.segmentIds.toSorted((a, b) => a - b)).toEqual([
      2, 3, 4, 5, 6, 7, 8, 9,
    ]);
  });

  it('never makes a segment beyond the cap, and holds eight up to four times the cap', () => {
    const cap = 64 * sealTokenVectors;
    const { largest, sealedMax } = simulate(equalSeals(256), { ...bounds, mergeTokenVectorsMax: cap });
    expect(largest).toBeLessThanOrEqual(cap);
    expect(sealedMax).toBe(8);
    const beyond = simulate(equalSeals(1024), { ...bounds, mergeTokenVectorsMax: cap });
    expect(beyond.largest).toBeLessThanOrEqual(cap);
    expect(beyond.sealedMax).toBeLessThanOrEqual(2 * (1024 / 64) + 1);
  });
});

describe('merging for waste', () => {
  const mebibytes = (count: number) => (count * 1024 * 1024) / bytesPerTokenVector;

  it('takes a segment of which more than a fifth is waste, from 4 MiB of it', () => {
    const wasteful = segmentOf(1, mebibytes(20), { live: 790, wasteSinceMs: 0 });
    expect(planMerge([wasteful], bounds)).toEqual({ reason: 'waste', segmentIds: [1] });
    expect(planMerge([{ ...wasteful, live: 810 }], bounds)).toBeUndefined();
    expect(planMerge([segmentOf(1, mebibytes(10), { live: 700, wasteSinceMs: 0 })], bounds)).toBeUndefined();
  });

  it('takes old waste, however little', () => {
    const segment = segmentOf(1, sealTokenVectors, { live: 999, wasteSinceMs: 5_000 });
    expect(planMerge([segment], at(5_999))).toBeUndefined();
    expect(planMerge([segment], at(6_000))?.segmentIds).toEqual([1]);
  });

  it('takes wasteful segments together as far as one target holds them, and a larger one alone', () => {
    const old = { live: 500, wasteSinceMs: 0 };
    const segments = [
      segmentOf(1, 1_200_000, old),
      segmentOf(2, 6_000_000, old),
      segmentOf(3, 400_000, old),
      segmentOf(4, 300_000),
    ];
    expect(planMerge(segments, at(1_000))?.segmentIds).toEqual([3, 1]);
    expect(planMerge(segments.slice(1, 2), at(1_000))?.segmentIds).toEqual([2]);
  });

  it('takes segments that a failed write has closed, before merging for number', () => {
    const segments = equalSeals(12).map((size, place) =>
      segmentOf(place + 1, size, { unwritable: place === 3 }),
    );
    expect(planMerge(segments, bounds)).toEqual({ reason: 'waste', segmentIds: [4] });
  });
});
