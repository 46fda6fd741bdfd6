/** The shapes of the benchmark of first runs, and the totals of its report. */
import { describe, expect, it } from 'vitest';
import { paddedTexts } from '../../src/encoder/scheduling/batch-shape.ts';
import { type FirstRunsRow, paddedShapes, totalsOf } from './first-runs.ts';

const rules = {
  queryHead: [1],
  documentHead: [1],
  queryLead: '',
  documentLead: '',
  tail: [2],
  queryPositionsMax: 512,
  documentPositionsMax: 512,
  expansion: undefined,
  skipIds: new Set<number>(),
};
const limits = { lengthStep: 16, queryBatchTokens: 2048, documentBatchTokens: 16_384 };

it('the shapes are all that scheduling makes of up to 32 queries and of documents of up to 288 positions', () => {
  const shapes = paddedShapes({ rules }, limits);
  const queries = shapes.filter(({ kind }) => kind === 'query');
  expect(queries.map(({ texts, length }) => `${texts} x ${length}`)).toEqual(
    [16, 32, 48, 64].flatMap((length) => [1, 2, 4, 8, 16, 32].map((texts) => `${texts} x ${length}`)),
  );
  const documents = new Set<string>();
  for (let length = 16; length <= 288; length += 16) {
    for (let texts = 1; texts * length <= limits.documentBatchTokens; texts++)
      documents.add(`${paddedTexts(texts, length, limits.documentBatchTokens)} x ${length}`);
  }
  const found = shapes.filter(({ kind }) => kind === 'document');
  expect(new Set(found.map(({ texts, length }) => `${texts} x ${length}`))).toEqual(documents);
  expect(new Set(shapes).size).toBe(24 + documents.size);
});

describe('the totals', () => {
  const row = (texts: number, warmed: boolean, first: number, third: number): FirstRunsRow => ({
    kind: 'query',
    texts,
    length: 32,
    warmed,
    first_ms: first,
    second_ms: third,
    third_ms: third,
  });

  it('are what first runs took beyond third ones', () => {
    const rows = [row(1, true, 2, 1), row(2, false, 71, 1), row(4, false, 1, 2), row(8, false, 6, 1)];
    expect(totalsOf(rows)).toMatchObject({
      all: { shapes: 4, more_than_5_ms: 1, longest_ms: 70, longest: 'query 2 x 32', sum_ms: 76 },
      warmed: { shapes: 1, more_than_5_ms: 0, longest_ms: 1, longest: 'query 1 x 32', sum_ms: 1 },
      not_warmed: { shapes: 3, more_than_5_ms: 1, longest_ms: 70, sum_ms: 75 },
    });
    expect(totalsOf([]).all).toEqual({
      shapes: 0,
      more_than_5_ms: 0,
      longest_ms: 0,
      longest: '',
      sum_ms: 0,
    });
  });

  it('are given by tenths of the order', () => {
    const rows = Array.from({ length: 20 }, (_, at) => row(1, true, at < 2 ? 51 : 1, 1));
    expect(totalsOf(rows).sum_ms_by_tenth).toEqual([100, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  });
});
