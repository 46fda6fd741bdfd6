/** Places of tokens: with the ids of the tokenizer for any text, each of the characters that its piece is made of. */
import * as fc from 'fast-check';
import path from 'node:path';
import { expect, test } from 'vitest';

import { spansOfRows } from '../../../../src/encoder/model/row-spans.ts';
import { loadModel } from '../../../../src/encoder/model/served-model.ts';
import { documentSequence, querySequence } from '../../../../src/encoder/model/colbert-rules.ts';
import { shippedModels } from '../../../../src/installation.ts';

const model = await loadModel(`${shippedModels()}/minilm-l6-maxsim/1`);
const { tokenizer } = model;
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ maxLength: 60 }),
);

test('any text: the ids of the tokenizer, in order, each of a part of the text', () => {
  let located = 0;
  let all = 0;
  fc.assert(
    fc.property(text, (given) => {
      all += 1;
      const places = tokenizer.locate(given);
      if (places === undefined) return;
      located += 1;
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
  // Those with marks in an order of their own are left out, and are few.
  expect(located / all).toBeGreaterThan(0.99);
});

test('words are found as they are written', () => {
  const given = 'ZU\u0308RICH 🎈 naïve 東京, unaffable';
  const { starts, ends } = tokenizer.locate(given)!;
  const words = Array.from(starts, (start, token) => given.slice(start, ends[token]));
  expect(words.join('')).toBe('ZÜRICH🎈naïve東京,unaffable'.normalize('NFD').replace('i\u0308', 'ï'));
});

test('rows of queries and of chunks: as many spans, none for special tokens, the window of its chunk', () => {
  const given = 'one two three, four five six. seven eight nine ten';
  const places = tokenizer.locate(given)!;
  const query = spansOfRows(model, places, undefined)!;
  expect(query.starts).toHaveLength(querySequence(model.rules, places.ids).rows);
  expect([query.starts[0], query.ends[0]]).toEqual([0, 0]);
  const chunking = { maxTokens: 5, overlapTokens: 1, minimumChunkTokens: 2 };
  const second = spansOfRows(model, places, { chunking, chunkIndex: 1 })!;
  expect(second.starts).toHaveLength(documentSequence(model.rules, places.ids.subarray(4, 9)).rows);
  const words = Array.from(second.starts, (start, row) => given.slice(start, second.ends[row]));
  expect(words.filter((word) => word !== '').join(' ')).toMatch(/^four five six/);
  expect(spansOfRows(model, places, { chunking, chunkIndex: 9 })).toBeUndefined();
});

test('the longest text of a request takes little of the event loop', () => {
  const given = 'naïve words of any kind '.repeat(4096).slice(0, 100 << 10);
  tokenizer.locate(given);
  const started = performance.now();
  expect(tokenizer.locate(given)!.ids.length).toBeGreaterThan(10_000);
  // 50 ms are the bound; a busy machine takes its time.
  expect(performance.now() - started).toBeLessThan(500);
});

test('a prefix of several tokens has no span, and no row where the skip-list drops it', async () => {
  const prompted = await loadModel(
    path.resolve(import.meta.dirname, '../../../fixtures/exports/multi-vector/bert-min'),
  );
  const { rules } = prompted;
  const given = 'the late, tokens';
  const places = prompted.tokenizer.locate(given)!;
  const words = ({ starts, ends }: { starts: Uint32Array; ends: Uint32Array }): string[] =>
    Array.from(starts, (start, row) => given.slice(start, ends[row])).filter((word) => word !== '');
  const query = spansOfRows(prompted, places, undefined)!;
  expect(words(query).join('')).toBe('thelate,tokens');
  expect(query.starts.findIndex((_, row) => query.ends[row] !== 0)).toBe(rules.queryHead.length);
  const chunking = { maxTokens: 20, overlapTokens: 0, minimumChunkTokens: 1 };
  const document = spansOfRows(prompted, places, { chunking, chunkIndex: 0 })!;
  expect(words(document).join('')).toBe('thelatetokens');
  // "search_document:" has two marks that are skipped.
  expect(document.starts.findIndex((_, row) => document.ends[row] !== 0)).toBe(rules.documentHead.length - 2);
});
