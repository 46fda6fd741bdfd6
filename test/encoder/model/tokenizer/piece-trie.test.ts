import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { PieceTrie } from '../../../../src/encoder/model/tokenizer/piece-trie.ts';

it('the longest piece that a text begins with is found, with few and with many characters', () => {
  // With few characters many pieces begin alike. With many characters nodes have many children.
  const texts = (characters: number) =>
    fc.string({
      unit: fc.integer({ min: 0x60, max: 0x60 + characters }).map((code) => String.fromCharCode(code)),
      maxLength: 6,
    });
  const sets = fc.constantFrom(2, 20, 2000).chain((characters) =>
    fc.record({
      pieces: fc.array(fc.tuple(texts(characters), fc.nat(100_000)), { maxLength: 300 }),
      asked: fc.array(texts(characters + 1), { maxLength: 50 }),
    }),
  );
  fc.assert(
    fc.property(sets, ({ pieces, asked }) => {
      const trie = new PieceTrie(pieces);
      const ids = new Map(pieces.filter(([text]) => text !== ''));
      for (const text of [...ids.keys(), ...asked]) {
        // The piece lies between others in the text.
        const from = 2;
        const to = from + text.length;
        let end = to;
        while (end > from && !ids.has(text.slice(0, end - from))) end--;
        expect(trie.longest(`ab${text}ab`, from, to)).toBe(end);
        if (end > from) expect(trie.found).toBe(ids.get(text.slice(0, end - from)));
      }
    }),
    { numRuns: 300 },
  );
});

it('a large vocabulary is placed in time in proportion to it', () => {
  const vocabulary = (size: number): [string, number][] =>
    Array.from({ length: size }, (_, i) => [
      String.fromCharCode(0x4e00 + ((i * 7919) % 20_000), 0x61 + (i % 26), 0x61 + (Math.floor(i / 26) % 26)),
      i,
    ]);
  const pieces = vocabulary(100_000);
  const before = process.threadCpuUsage();
  const trie = new PieceTrie(pieces);
  const { user, system } = process.threadCpuUsage(before);
  expect(user + system).toBeLessThan(10_000_000);
  const ids = new Map(pieces);
  for (const [text, id] of ids) {
    expect(trie.longest(text, 0, text.length)).toBe(text.length);
    expect(trie.found).toBe(id);
  }
});
