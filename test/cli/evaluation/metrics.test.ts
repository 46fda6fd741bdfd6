/** Against values worked out by hand, and trec_eval's conventions. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { distribution, percentile } from '../../../src/cli/evaluation/distribution.ts';
import { ndcg } from '../../../src/cli/evaluation/ndcg.ts';
import { recall } from '../../../src/cli/evaluation/recall.ts';

const grades = (entries: Readonly<Record<string, number>>): ReadonlyMap<string, number> =>
  new Map(Object.entries(entries));

describe('nDCG', () => {
  it('is the grade over log2(rank + 1), summed, over the same of the ideal ranking', () => {
    // Ranking: grades 3, 2, 3, 0, 1, 2 (the textbook example of the linear gain).
    const judged = grades({ d1: 3, d2: 2, d3: 3, d4: 0, d5: 1, d6: 2 });
    const dcg = 3 + 2 / Math.log2(3) + 3 / 2 + 0 + 1 / Math.log2(6) + 2 / Math.log2(7);
    const ideal = 3 + 3 / Math.log2(3) + 2 / 2 + 2 / Math.log2(5) + 1 / Math.log2(6);
    expect(dcg).toBeCloseTo(6.861, 3);
    expect(ndcg(['d1', 'd2', 'd3', 'd4', 'd5', 'd6'], judged, 10)).toBeCloseTo(dcg / ideal, 12);
    expect(dcg / ideal).toBeCloseTo(0.9608, 4);
  });

  it('of one relevant document at rank 2 is 1 / log2(3)', () => {
    expect(ndcg(['x', 'a'], grades({ a: 1 }), 10)).toBeCloseTo(0.6309, 4);
  });

  it('does not see what lies beyond the cutoff', () => {
    expect(ndcg(['x', 'y', 'a'], grades({ a: 1 }), 2)).toBe(0);
  });

  it('counts relevant documents that were not retrieved in the ideal ranking', () => {
    expect(ndcg(['a'], grades({ a: 1, b: 1 }), 10)).toBeCloseTo(1 / (1 + 1 / Math.log2(3)), 12);
  });

  it('cuts the ideal ranking at the same rank', () => {
    expect(ndcg(['a'], grades({ a: 1, b: 1 }), 1)).toBe(1);
  });

  it('takes grades below 0 as 0', () => {
    expect(ndcg(['bad', 'a'], grades({ a: 1, bad: -2 }), 10)).toBeCloseTo(0.6309, 4);
  });

  it('is 0 for a query without a relevant document and for an empty ranking', () => {
    expect(ndcg(['a'], grades({ a: 0 }), 10)).toBe(0);
    expect(ndcg([], grades({ a: 1 }), 10)).toBe(0);
  });

  it('lies in 0..1 and is 1 exactly for rankings sorted by grade', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 20 }), (values) => {
        const judged = new Map(values.map((grade, position) => [`d${position}`, grade]));
        const score = ndcg([...judged.keys()], judged, 10);
        expect(score).toBeGreaterThanOrEqual(0);
        expect(score).toBeLessThanOrEqual(1 + 1e-12);
        const sorted = [...judged.keys()].toSorted((a, b) => (judged.get(b) ?? 0) - (judged.get(a) ?? 0));
        expect(ndcg(sorted, judged, 10)).toBeCloseTo(values.some((grade) => grade > 0) ? 1 : 0, 12);
      }),
    );
  });
});

describe('recall', () => {
  it('is the share of relevant documents found up to the cutoff', () => {
    const judged = grades({ a: 1, b: 2, c: 1, d: 0 });
    expect(recall(['a', 'x', 'd', 'c'], judged, 100)).toBeCloseTo(2 / 3, 12);
    expect(recall(['a', 'x', 'd', 'c'], judged, 3)).toBeCloseTo(1 / 3, 12);
  });

  it('divides by all relevant documents, also where they outnumber the cutoff', () => {
    expect(recall(['a'], grades({ a: 1, b: 1 }), 1)).toBe(0.5);
  });

  it('is 0 for a query without a relevant document', () => {
    expect(recall(['a'], grades({ a: 0 }), 100)).toBe(0);
  });
});

describe('latency summary', () => {
  it('takes percentiles by nearest rank', () => {
    const sample = [15, 20, 35, 40, 50];
    expect(percentile(sample, 5)).toBe(15);
    expect(percentile(sample, 30)).toBe(20);
    expect(percentile(sample, 40)).toBe(20);
    expect(percentile(sample, 50)).toBe(35);
    expect(percentile(sample, 100)).toBe(50);
  });

  it('does not depend on the order of the sample', () => {
    const sample = Array.from({ length: 200 }, (_, position) => ((position * 37) % 200) + 1);
    expect(distribution(sample)).toEqual({ mean: 100.5, p50: 100, p90: 180, p95: 190, p99: 198, max: 200 });
  });

  it('refuses an empty sample', () => {
    expect(() => distribution([])).toThrow(RangeError);
  });
});
