/** Places of tokens: with the ids of the tokenizer for any text, each of the characters that its piece is made of. */
import * as fc from 'fast-check';
import path from 'node:path';
import { expect, test } from 'vitest';

import { spansOfChunk, spansOfQuery } from '../../../../src/encoder/model/row-spans.ts';
import { loadModel } from '../../../../src/encoder/model/served-model.ts';
import { documentSequence, querySequence } from '../../../../src/encoder/model/colbert-rules.ts';
import { shippedModels } from '../../../../src/process/installation.ts';
import { calmestOf } from '../../../support/turns.ts';

const model = await loadModel(`${shippedModels()}/minilm-l6-maxsim/1`);
const { tokenizer } = model;
const locate = (given: string) => tokenizer.locateInSlices(given, new AbortController().signal);
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ maxLength: 60 }),
);

test('any text: the ids of the tokenizer, in order, each of a part of the text', async () => {
  await fc.assert(
    fc.asyncProperty(text, async (given) => {
      const places = (await locate(given))!;
      expect(places.ids).toEqual(tokenizer.encode(given));
      let before = 0;
      for (const [token, start] of places.starts.entries()) {
        const end = places.ends[token]!;
        expect(start).toBeGreaterThanOrEqual(0);
        expect(end).toBeGreaterThan(start);
        expect(end).toBeLessThanOrEqual(given.length);
        // Two pieces of one character have its place both.
        expect(start).toBeGreaterThanOrEqual(before);
        before = start;
      }
    }),
    { numRuns: 3000 },
  );
});

test('words are found as they are written', async () => {
  const given = 'ZU\u0308RICH 🎈 naïve 東京, unaffable';
  const { starts, ends } = (await locate(given))!;
  const words = Array.from(starts, (start, token) => given.slice(start, ends[token]));
  expect(words.join('')).toBe('ZÜRICH🎈naïve東京,unaffable'.normalize('NFD').replace('i\u0308', 'ï'));
});

test('rows of queries and of chunks: as many spans, none for special tokens, the window of its chunk', async () => {
  const given = 'one two three, four five six. seven eight nine ten';
  const places = (await locate(given))!;
  const query = spansOfQuery(model.rules, places);
  expect(query.starts).toHaveLength(querySequence(model.rules, places.ids).rows);
  expect([query.starts[0], query.ends[0]]).toEqual([0, 0]);
  const chunking = { maxTokens: 5, overlapTokens: 1, minimumChunkTokens: 2 };
  const second = spansOfChunk(model, places, { chunking, chunkIndex: 1 })!;
  expect(second.starts).toHaveLength(documentSequence(model.rules, places.ids.subarray(4, 9)).rows);
  const words = Array.from(second.starts, (start, row) => given.slice(start, second.ends[row]));
  expect(words.filter((word) => word !== '').join(' ')).toMatch(/^four five six/);
  expect(spansOfChunk(model, places, { chunking, chunkIndex: 9 })).toBeUndefined();
});

const longestTexts = Object.entries({
  words: 'naïve words of any kind ',
  punctuation: 'a,b;',
  ideographs: Array.from({ length: 34_000 }, (_, place) =>
    String.fromCodePoint(0x4e00 + (place % 20_000)),
  ).join(''),
  marks: 'e\u0301\u0334',
  'one word': 'x',
}).map(([name, part]) => [name, part.repeat((100 << 10) / Buffer.byteLength(part))] as const);

test.each(longestTexts)(
  'the longest text of a request leaves the event loop its turns: %s',
  async (_name, given) => {
    await locate(given);
    const { longestMs } = await calmestOf(5, () => locate(given));
    // Turns end after 2 ms of work; the rest is room for a step that began before, and for a slow machine. At once, ideographs take 30 and more.
    expect(longestMs).toBeLessThan(25);
  },
);

test('the search for places ends when its caller has gone', async () => {
  const [[, given]] = longestTexts as [(typeof longestTexts)[number]];
  const caller = new AbortController();
  const locating = tokenizer.locateInSlices(given, caller.signal);
  caller.abort(new Error('gone'));
  await expect(locating).rejects.toThrow('gone');
});

test('a prefix of several tokens has no span, and no row where the skip-list drops it', async () => {
  const prompted = await loadModel(
    path.resolve(import.meta.dirname, '../../../fixtures/exports/multi-vector/bert-min'),
  );
  const { rules } = prompted;
  const given = 'the late, tokens';
  const places = (await prompted.tokenizer.locateInSlices(given, new AbortController().signal))!;
  const words = ({ starts, ends }: { starts: Uint32Array; ends: Uint32Array }): string[] =>
    Array.from(starts, (start, row) => given.slice(start, ends[row])).filter((word) => word !== '');
  const query = spansOfQuery(rules, places);
  expect(words(query).join('')).toBe('thelate,tokens');
  expect(query.starts.findIndex((_, row) => query.ends[row] !== 0)).toBe(rules.queryHead.length);
  const chunking = { maxTokens: 20, overlapTokens: 0, minimumChunkTokens: 1 };
  const document = spansOfChunk(prompted, places, { chunking, chunkIndex: 0 })!;
  expect(words(document).join('')).toBe('thelatetokens');
  // "search_document:" has two marks that are skipped.
  expect(document.starts.findIndex((_, row) => document.ends[row] !== 0)).toBe(rules.documentHead.length - 2);
});
