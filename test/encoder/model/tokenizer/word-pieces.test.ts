import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createWordPieces } from '../../../../src/encoder/model/tokenizer/word-pieces.ts';

const prefix = '##';
const unknownId = 7;
const charactersMax = 6;

/** The definition, word by word and character by character. */
function byDefinition(vocabulary: ReadonlyMap<string, number>, word: string): number[] {
  const characters = Array.from(word);
  if (characters.length > charactersMax) return [unknownId];
  const ids: number[] = [];
  for (let from = 0; from < characters.length;) {
    let end = characters.length;
    const piece = (): string => (from === 0 ? '' : prefix) + characters.slice(from, end).join('');
    while (end > from && !vocabulary.has(piece())) end--;
    if (end === from) return [unknownId];
    ids.push(vocabulary.get(piece())!);
    from = end;
  }
  return ids;
}

/** All words lie in one text, between others. */
function cut(vocabulary: ReadonlyMap<string, number>, words: readonly string[]): number[] {
  const append = createWordPieces({ vocabulary, continuationPrefix: prefix, unknownId, charactersMax });
  const text = words.join('');
  const ids: number[] = [];
  let from = 0;
  for (const word of words) {
    if (word !== '') append(text, from, from + word.length, ids);
    from += word.length;
  }
  return ids;
}

describe('word pieces', () => {
  it('are the longest ones from left to right, or the unknown one', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '#', 'é', '😀', '😁'), maxLength: 8 });
    const pieces = fc.uniqueArray(
      fc.oneof(
        text,
        text.map((piece) => prefix + piece),
      ),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(pieces, fc.array(text, { maxLength: 6 }), (known, words) => {
        const vocabulary = new Map(known.filter((piece) => piece !== '').map((piece, i) => [piece, 100 + i]));
        expect(cut(vocabulary, words)).toEqual(words.flatMap((word) => byDefinition(vocabulary, word)));
      }),
      { numRuns: 2000 },
    );
  });

  it('count the length of a word in characters, not in UTF-16 units', () => {
    const vocabulary = new Map([
      ['😀', 1],
      ['##😀', 2],
    ]);
    expect(cut(vocabulary, ['😀'.repeat(6), '😀'.repeat(7)])).toEqual([1, 2, 2, 2, 2, 2, unknownId]);
  });
});
