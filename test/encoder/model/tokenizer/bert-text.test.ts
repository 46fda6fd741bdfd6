import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bertNormalizer } from '../../../../src/encoder/model/tokenizer/bert-text.ts';

const normalize = bertNormalizer({
  cleanText: true,
  chineseCharacters: true,
  stripAccents: true,
  lowercase: true,
});

/** Decomposed as a whole. */
function plainly(text: string): string {
  return text
    .normalize('NFD')
    .replaceAll(/\p{Mn}/gu, '')
    .replaceAll('Σ', 'σ')
    .toLowerCase();
}

/** Left out are those of other rules: control and Chinese characters, white space, what only a later Unicode decomposes. */
const isPlain = (character: string): boolean => normalize(character) === plainly(character);
const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff })
  .filter((code) => code < 0xd800 || code >= 0xe000)
  .map((code) => String.fromCodePoint(code))
  .filter(isPlain);
const marks = Array.from({ length: 0x20000 }, (_, code) => String.fromCodePoint(code)).filter(
  (character) => /\p{M}/u.test(character) && isPlain(character),
);
const nonspacingMarks = marks.filter((character) => /\p{Mn}/u.test(character));

describe('the normaliser of BERT tokenizers', () => {
  it('strips a text as if it were decomposed as a whole, in any order of marks', () => {
    const texts = fc.array(fc.oneof(anyCharacter, fc.constantFrom(...marks)), { maxLength: 30 });
    fc.assert(
      fc.property(texts, (characters) => {
        const text = characters.join('');
        expect(normalize(text)).toBe(plainly(text));
      }),
      { numRuns: 3000 },
    );
  });

  it('gives long texts in short parts that are the whole', () => {
    const texts = fc.array(fc.oneof(anyCharacter, fc.constantFrom(...marks), fc.constant('e')), {
      minLength: 1,
      maxLength: 30,
    });
    fc.assert(
      fc.property(texts, (characters) => {
        const text = characters.join('').repeat(Math.ceil(12_000 / characters.length));
        const parts = [...normalize.parts(text)];
        expect(parts.join('')).toBe(plainly(text));
        // Characters that are only left out take almost no time, and make no part.
        expect(parts.length).toBeGreaterThanOrEqual(parts.join('') === '' ? 1 : 2);
      }),
      { numRuns: 100 },
    );
  });

  it('strips runs of marks of any length', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...nonspacingMarks), { minLength: 31, maxLength: 200 }), (run) => {
        expect(normalize(`e${run.join('')}a`)).toBe('ea');
      }),
    );
  });

  it('keeps marks where accents are kept', () => {
    const keep = bertNormalizer({
      cleanText: true,
      chineseCharacters: true,
      stripAccents: false,
      lowercase: false,
    });
    const text = `e${'\u0315\u0300'.repeat(100)}`;
    expect(keep(text)).toBe(text);
  });
});
