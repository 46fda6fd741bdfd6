import { expect, it } from 'vitest';
import {
  assertAffordable,
  costOf,
  readingWork,
  searchWorkMax,
  unitsOfSearch,
  type QueryWork,
} from '../../../src/service/limits/work.ts';

const totalOf = (query: QueryWork): number => {
  const { encoding, engine } = costOf(query);
  return encoding + engine;
};
/** The largest query of the contract, over the longest chunks of a model that stores a row for each token. */
const dearest: QueryWork = {
  query: 'x'.repeat(8 << 10),
  queryTokensMax: 510,
  scored: { candidateK: 500, chunkRowsMax: 510, grouped: true },
  matchedTokenVectors: 2_000 * 510,
};

it('the dearest search of the contract is affordable, and so are 32 usual ones', () => {
  expect(() => assertAffordable(totalOf(dearest), 'query')).not.toThrow();
  const usual = {
    query: 'how do bees find flowers?',
    queryTokensMax: 510,
    scored: { candidateK: 200, chunkRowsMax: 256, grouped: true },
  };
  expect(() => assertAffordable(32 * totalOf(usual), 'queries')).not.toThrow();
});

it('a query costs the encoder its tokens, no more than the model reads, whatever the engine scores', () => {
  const query = 'x'.repeat(80);
  expect(costOf({ query })).toEqual({ encoding: 20, engine: unitsOfSearch });
  expect(costOf({ query, queryTokensMax: 5, scored: { tokenVectors: 1 << 18 } })).toEqual({
    encoding: 5,
    engine: unitsOfSearch + 16,
  });
});

it('the engine is asked for the rows of documents that match, besides', () => {
  const { engine } = costOf({ ...dearest, matchedTokenVectors: 0 });
  expect(costOf(dearest).engine - engine).toBeCloseTo((2_000 * 510 * 510) / 2 ** 18);
});

it('the engine is asked for the rows of the candidates', () => {
  const ofRows = (chunkRowsMax: number): number =>
    costOf({ ...dearest, scored: { candidateK: 500, chunkRowsMax, grouped: true }, matchedTokenVectors: 0 })
      .engine - unitsOfSearch;
  expect(ofRows(510)).toBeCloseTo(3 * ofRows(170));
});

it('a refusal says what the request would cost and what it may cost', () => {
  const work = 32 * totalOf(dearest);
  expect(work).toBeGreaterThan(searchWorkMax);
  expect(() => assertAffordable(work, 'queries')).toThrow(
    expect.objectContaining({
      code: 'validation_error',
      message: expect.stringMatching(new RegExp(`${Math.ceil(work)} units.*${searchWorkMax}`)),
      issues: [expect.objectContaining({ path: 'queries', code: 'too_much_work' })],
    }) as Error,
  );
});

it('a page of the largest metadata costs milliseconds, not seconds', () => {
  expect(readingWork({ rows: 1000, bytes: 4 << 20 })).toBeLessThan(500);
});
