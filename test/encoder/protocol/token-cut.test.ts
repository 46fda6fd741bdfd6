/** Where a list of texts is cut. */
import { expect, it } from 'vitest';
import { cutAt, cutTokens } from '../../../src/encoder/protocol/token-cut.ts';

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

it('cuts only texts above the bound on a text while the list fits', () => {
  expect(cutTokens([5, 50, 10], { documentTokensMax: 20, tokensMax: 100 })).toEqual([5, 20, 10]);
  expect(cutTokens([5, 50, 10], { documentTokensMax: 50, tokensMax: 65 })).toEqual([5, 50, 10]);
  expect(cutTokens([], { documentTokensMax: 50, tokensMax: 65 })).toEqual([]);
  expect(cutTokens([0, 0], { documentTokensMax: 50, tokensMax: 2 })).toEqual([0, 0]);
});

it('cuts all long texts at one number, the largest at which the list fits', () => {
  for (let run = 0; run < 300; run++) {
    const counts = Array.from({ length: 1 + (run % 9) }, () => Math.floor(Math.random() * 40));
    const cut = {
      documentTokensMax: 1 + Math.floor(Math.random() * 50),
      tokensMax: counts.length + Math.floor(Math.random() * 120),
    };
    const at = cutAt(counts, cut);
    const cutBy = (most: number): number => sumOf(counts.map((tokens) => Math.min(tokens, most)));
    expect(at, JSON.stringify({ counts, cut })).toBeLessThanOrEqual(cut.documentTokensMax);
    expect(cutBy(at), JSON.stringify({ counts, cut })).toBeLessThanOrEqual(cut.tokensMax);
    if (at < cut.documentTokensMax)
      expect(cutBy(at + 1), JSON.stringify({ counts, cut })).toBeGreaterThan(cut.tokensMax);
  }
});

it('sorts a thousand texts by number, not by their digits', () => {
  const counts = Array.from({ length: 1000 }, (_, at) => (at % 2 === 0 ? 9 : 1_000));
  expect(cutAt(counts, { documentTokensMax: 4096, tokensMax: 100_000 })).toBe(191);
});
