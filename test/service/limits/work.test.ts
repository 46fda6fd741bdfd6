import { expect, it } from 'vitest';
import {
  assertAffordable,
  engineWork,
  queryTokens,
  readingWork,
  searchWorkMax,
} from '../../../src/service/limits/work.ts';

/** The largest query of the contract, over the longest chunks of the default model. */
const dearest = { query: 'x'.repeat(8 << 10), candidateK: 500, chunkTokensMax: 510, queryTokensMax: 510 };

it('the dearest search of the contract is affordable, and so are 32 usual ones', () => {
  const alone = engineWork({ ...dearest, grouped: true }) + queryTokens(dearest);
  expect(() => assertAffordable(alone, 'query')).not.toThrow();
  const usual = {
    query: 'how do bees find flowers?',
    candidateK: 200,
    chunkTokensMax: 256,
    queryTokensMax: 510,
  };
  const many = 32 * (engineWork({ ...usual, grouped: true }) + queryTokens(usual));
  expect(() => assertAffordable(many, 'queries')).not.toThrow();
});

it('a refusal says what the request would cost and what it may cost', () => {
  const work = 32 * (engineWork({ ...dearest, grouped: true }) + queryTokens(dearest));
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
