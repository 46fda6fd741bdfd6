/** Words of a query, and the spans of them that may name a metadata value. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { looseKey } from '../../../src/index/terms/loose-keys.ts';
import { spansOf } from '../../../src/service/match/words.ts';
import { rounds } from '../../rounds.ts';

const textsOf = (query: string, words?: number): readonly string[] =>
  spansOf(query)
    .filter((span) => words === undefined || span.words === words)
    .map(({ start, end }) => query.slice(start, end));

it.each([
  ['what is E11.65?', ['what', 'is', 'E11.65?']],
  ['\tE11\u00a065\u3000A1 ', ['E11', '65', 'A1']],
  ['什么是E11.65', ['什么是', 'E11.65']],
  ['E11.65是什么', ['E11.65', '是什么']],
  ['什么是“E11.65”？', ['什么是', '“E11.65”？']],
  ['C++と、東京 を', ['C++', 'と、東京', 'を']],
  ['Ｅ１１は', ['Ｅ１１', 'は']],
  ['हिE11', ['हि', 'E11']],
  ['E11и12', ['E11', 'и', '12']],
  ['café東 é東', ['café東', 'é東']],
  ['a - b', ['a', 'b']],
  ['... - 🎈', []],
  ['', []],
])('%j has the words %j', (query, words) => {
  expect(textsOf(query, 1)).toEqual(words);
});

it('a span has one to six neighbouring words, and those of signs alone are at no end', () => {
  expect(textsOf('a1 b2 c3')).toEqual(['a1', 'a1 b2', 'a1 b2 c3', 'b2', 'b2 c3', 'c3']);
  expect(spansOf('a1 b2 c3 d4 e5 f6 g7')).toHaveLength(27);
  expect(textsOf('E11 - 65 ?')).toEqual(['E11', 'E11 - 65', '65']);
  // A name of one character matches as it is written.
  expect(spansOf('C ++').map(({ key }) => key)).toEqual(['=C', '=C ++']);
});

it('the first 64 words take part, and spans of at most 256 bytes', () => {
  const many = Array.from({ length: 100 }, (_, word) => `w${word}`).join(' ');
  expect(textsOf(many, 1).at(-1)).toBe('w63');
  expect(spansOf(many)).toHaveLength(64 * 6 - 15);
  const long = 'é'.repeat(128);
  expect(textsOf(`${long} ${long}x a1`)).toEqual([long, 'a1']);
});

it('the key of a span is that of its text, in whatever script, and its places are in order', () => {
  const pieces = [
    'E11',
    '65',
    'ß',
    'Σ',
    'ΟΔΟΣ',
    '東京',
    'は',
    'हि',
    'é',
    'e\u0301',
    'ﬁ',
    'İ',
    'Ｅ',
    '²',
    '𝐀',
  ];
  const signs = [' ', ' ', ' ', '\u3000', '.', '-', '、', '“', '\u0301', '¨', '🎈'];
  const query = fc.array(fc.constantFrom(...pieces, ...signs), { maxLength: 40 });
  fc.assert(
    fc.property(query, (parts) => {
      const text = parts.join('');
      const spans = spansOf(text);
      for (const { start, end, key } of spans) expect(key).toBe(looseKey(text.slice(start, end)));
      const places = spans.map(({ first, words, start }) => [first, words, start]);
      expect(places).toEqual(places.toSorted((one, other) => one[0]! - other[0]! || one[1]! - other[1]!));
      // No letter is in two words, and none is left out.
      const letters = spans
        .filter(({ words }) => words === 1)
        .map(({ start, end }) => text.slice(start, end));
      const said = (each: string): string => each.replaceAll(/[^\p{L}\p{M}\p{N}]/gu, '');
      expect(said(letters.join(''))).toBe(said(text));
    }),
    { numRuns: rounds({ short: 2_000, nightly: 200_000 }) },
  );
});
