/** Composition without reordering agrees with NFC wherever NFC need not reorder. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compose, composes } from '../../../../src/encoder/model/tokenizer/composition.ts';

const composed = (text: string): string =>
  compose(text)
    .map((part) => part.text)
    .join('');

const characters = Array.from({ length: 0x110000 }, (_, code) => code)
  .filter((code) => code < 0xd800 || code >= 0xe000)
  .map((code) => String.fromCodePoint(code));
const decomposing = characters.filter((character) => character.normalize('NFD') !== character);
const marks = characters.filter((character) => /\p{M}/u.test(character));

describe('composition', () => {
  it('of every character, decomposed, gives what NFC gives', () => {
    for (const character of decomposing) {
      expect(composed(character.normalize('NFD'))).toBe(character.normalize('NFC'));
    }
  });

  it('knows every character that composes with one before it', () => {
    for (const character of decomposing) {
      const parts = character.normalize('NFD');
      if (parts.normalize('NFC') !== character) continue;
      expect(composes(Array.from(parts).at(-1)!.codePointAt(0)!), parts).toBe(true);
    }
  });

  it('of decomposed texts gives NFC, and leaves texts in NFC as they are', () => {
    const text = fc.array(fc.oneof(fc.constantFrom(...decomposing), fc.constantFrom(...marks)), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(text, (parts) => {
        const given = parts.join('');
        const expected = given.normalize('NFC');
        expect(composed(given.normalize('NFD'))).toBe(expected);
        expect(composed(expected)).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });

  it('covers the text with its parts, of which only those that composed are longer than written', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('e', 'a', ...marks), { maxLength: 12 }), (all) => {
        const text = all.join('');
        const covered = new Uint8Array(text.length);
        for (const part of compose(text)) {
          if (part.end - part.start === part.text.length) {
            expect(text.slice(part.start, part.end)).toBe(part.text);
          }
          covered.fill(1, part.start, part.end);
        }
        expect(covered.every((each) => each === 1)).toBe(true);
      }),
    );
  });
});
