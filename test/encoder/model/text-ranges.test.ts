/** Where chunks lie in their texts: a chunk's passage has its tokens, and its token vectors the places of their tokens. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { tokenWindows, type TokenWindow } from '../../../src/encoder/model/chunker.ts';
import { documentSequence } from '../../../src/encoder/model/colbert-rules.ts';
import { type ChunkPlace, documentTokens, placeOfChunk } from '../../../src/encoder/model/row-spans.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import {
  packRowPlaces,
  type Place,
  type Spans,
  unpackRowPlaces,
} from '../../../src/encoder/protocol/row-places.ts';
import { shippedModels } from '../../../src/process/installation.ts';

const model = await loadModel(`${shippedModels()}/bge-small-maxsim/1`);
const { tokenizer, rules, windowTokensMax } = model;
const { signal } = new AbortController();
const documents = 10_000;

const scripts = [
  'plain words of any kind, e.g. un-affable; ',
  'Straße naïve Ångström ZU\u0308RICH ',
  'съешь ещё этих мягких булок ',
  'Ξεσκεπάζω την ψυχοφθόρα ΟΔΥΣΣΕΎΣ ',
  'שָׁלוֹם עולם ',
  'السَّلامُ عليكم ',
  'नमस्ते दुनिया क्षि ',
  'สวัสดีชาวโลก ',
  '東京で한국어를 ',
  '각 ᄒᆞᆫ글 ',
  '👩‍👩‍👧‍👦🏳️‍🌈🎈 e\u0301\u0327\u0334 ',
  'x'.repeat(120) + ' ',
  'antidisestablishmentarianism-internationalisation ',
  ' \t\n\u200b\u00ad\u0000\ufffd\ud800 ',
  '------------............ ' + ' '.repeat(300),
];
const text = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...scripts) },
      fc.constantFrom(...scripts).chain((script) => fc.nat(script.length).map((end) => script.slice(0, end))),
      fc.string({ unit: 'grapheme', maxLength: 20 }),
      fc.string({ unit: 'binary', maxLength: 20 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));
const chunking = fc
  .record({ maxTokens: fc.integer({ min: 1, max: 40 }), overlap: fc.nat(39), minimum: fc.nat(40) })
  .map(({ maxTokens, overlap, minimum }) => ({
    maxTokens,
    overlapTokens: Math.min(overlap, maxTokens - 1),
    minimumChunkTokens: Math.min(minimum, maxTokens),
  }));

/** Tokens of the window, with the whole of the words that it cuts. */
function wholeWords(wordStarts: Uint8Array, { start, end }: TokenWindow): TokenWindow {
  const first = wordStarts.lastIndexOf(1, start);
  const next = wordStarts.indexOf(1, end);
  return { start: first, end: next === -1 ? wordStarts.length : next };
}

function isSame(some: Int32Array, others: Int32Array): boolean {
  return some.length === others.length && some.every((id, at) => id === others[at]);
}

test('the passage of a chunk has its tokens, and every row lies in it where its token does', async () => {
  let chunks = 0;
  await fc.assert(
    fc.asyncProperty(text, chunking, async (given, parameters) => {
      const points = Array.from(given);
      const { ids, places } = await documentTokens(model, given, signal);
      expect(places, 'every text is located').toBeDefined();
      expect(isSame(ids, tokenizer.encode(given))).toBe(true);
      const covered = new Uint8Array(points.length);
      for (const window of tokenWindows(ids.length, parameters, windowTokensMax)) {
        chunks += 1;
        const sequence = documentSequence(rules, ids.subarray(window.start, window.end));
        const place = placeOfChunk(rules, places!, window, sequence);
        const words = wholeWords(places!.wordStarts, window);
        const passage = points.slice(place.start, place.end).join('');
        const passageIds = tokenizer.encode(passage);
        const rows = rowsOf(place);
        const isInside = rows.every((row) => !row || (row.start >= place.start && row.end <= place.end));
        // One expectation a chunk: they take most of the time.
        expect([
          isSame(passageIds, ids.subarray(words.start, words.end)),
          rows.length === sequence.rows,
          isInside,
        ]).toEqual([true, true, true]);
        covered.fill(1, place.start, place.end);
      }
      for (const [at, point] of points.entries()) {
        if (covered[at] === 0 && tokenizer.encode(point).length > 0) expect.fail(`${at} is in no range`);
      }
    }),
    { numRuns: documents },
  );
  expect(chunks).toBeGreaterThan(documents);
});

test('the first tokens of a long text are those of the whole text, and the rest is not looked at', async () => {
  let shortened = 0;
  await fc.assert(
    fc.asyncProperty(text, fc.nat(60), async (given, tokensMax) => {
      const long = given.repeat(60);
      const whole = await documentTokens(model, long, signal);
      const { ids, places } = await documentTokens(model, long, signal, tokensMax);
      if (ids.length < whole.ids.length) shortened += 1;
      expect(ids.length > tokensMax).toBe(whole.ids.length > tokensMax);
      expect(isSame(ids.subarray(0, tokensMax), whole.ids.subarray(0, tokensMax))).toBe(true);
      for (const field of ['starts', 'ends', 'wordStarts'] as const)
        expect(places![field].subarray(0, tokensMax)).toEqual(whole.places![field].subarray(0, tokensMax));
    }),
    { numRuns: 200 },
  );
  expect(shortened).toBeGreaterThan(50);
  let units = 0;
  const locateInSlices = (led: string) => {
    units += led.length;
    return tokenizer.locateInSlices(led, signal);
  };
  await documentTokens(
    { rules, tokenizer: { ...tokenizer, locateInSlices } },
    'bees dance '.repeat(9_000),
    signal,
    500,
  );
  expect(units).toBeLessThan(5_000);
});

test('a row lies where its word is written', async () => {
  const given = '🎈 Zu\u0308rich, naïve 東京';
  const { ids, places } = await documentTokens(model, given, signal);
  const window = { start: 0, end: ids.length };
  const place = placeOfChunk(rules, places!, window, documentSequence(rules, ids));
  const points = Array.from(given);
  const words = rowsOf(place).map((row) => row && points.slice(row.start, row.end).join(''));
  expect(points.slice(place.start, place.end).join('')).toBe(given);
  expect(words.filter((word) => word !== undefined)).toEqual([
    '🎈',
    'Zu\u0308rich',
    ',',
    'naïve',
    '東',
    '京',
  ]);
  // CLS, the mark of documents, and SEP are no text.
  expect([words[0], words.at(-1)]).toEqual([undefined, undefined]);
});

test('places of any step and length are packed, most in one byte', () => {
  const number = fc.oneof(fc.nat(20), fc.nat(1 << 20));
  fc.assert(
    fc.property(fc.nat(1 << 20), fc.array(fc.tuple(number, number)), (start, given) => {
      let at = start;
      const starts = given.map(([step, length]) => (length === 0 ? 0 : (at += step)));
      const ends = starts.map((from, row) => from + given[row]![1]);
      const packed = packRowPlaces(start, spansOf(starts, ends));
      expect(unpackRowPlaces(start, packed).map(({ place }) => place)).toEqual(
        starts.map((from, row) => (ends[row] === from ? undefined : { start: from, end: ends[row] })),
      );
    }),
  );
  expect(packRowPlaces(7, spansOf([0, 7, 22, 40], [0, 21, 36, 41]))).toEqual(
    Uint8Array.of(0x00, 0x0e, 0xfe, 0x0f, 18, 1),
  );
});

test('places of pooled tokens are unpacked row by row, and the first ones are those of the rows', () => {
  const token = fc.record({ step: fc.nat(40), length: fc.nat(30), row: fc.nat(9) });
  fc.assert(
    fc.property(fc.nat(1 << 20), fc.array(token, { minLength: 1, maxLength: 40 }), (start, tokens) => {
      let at = start;
      const starts = tokens.map(({ step, length }) => (length === 0 ? 0 : (at += step)));
      const ends = starts.map((from, i) => from + tokens[i]!.length);
      // Each row is represented by the first token that has it, and rows are in that order.
      const names = [...new Set(tokens.map(({ row }) => row))];
      const pooled = {
        representatives: Uint32Array.from(names, (name) => tokens.findIndex(({ row }) => row === name)),
        pooledOf: Uint32Array.from(tokens, ({ row }) => names.indexOf(row)),
      };
      const placeOf = (i: number) => ({ start: starts[i]!, end: ends[i]! });
      const hasText = (i: number): boolean => tokens[i]!.length > 0;
      const expected = names.map((name, row) => {
        const all = tokens.flatMap((each, i) => (each.row === name && hasText(i) ? [placeOf(i)] : []));
        const first = pooled.representatives[row]!;
        return {
          place: hasText(first) ? placeOf(first) : undefined,
          all: all.toSorted((one, other) => one.start - other.start || one.end - other.end),
        };
      });
      const packed = packRowPlaces(start, spansOf(starts, ends), pooled);
      expect(unpackRowPlaces(start, packed)).toEqual(expected);
      const rowsAlone = packRowPlaces(
        start,
        spansOf(
          [...pooled.representatives].map((i) => starts[i]!),
          [...pooled.representatives].map((i) => ends[i]!),
        ),
      );
      expect(packed.subarray(0, rowsAlone.length)).toEqual(rowsAlone);
    }),
  );
});

function rowsOf({ start, tokens }: ChunkPlace): readonly (Place | undefined)[] {
  return unpackRowPlaces(start, packRowPlaces(start, tokens)).map(({ place }) => place);
}

function spansOf(starts: readonly number[], ends: readonly number[]): Spans {
  return { starts: Uint32Array.from(starts), ends: Uint32Array.from(ends) };
}

test('rows and tokens above 255 keep their places and numbers, also where rows are pooled', () => {
  const [tokens, rows] = [900, 400];
  const starts = Uint32Array.from({ length: tokens }, (_, token) => 7 + 20 * token);
  const spans: Spans = { starts, ends: starts.map((start, token) => start + 1 + (token % 300)) };
  // The first tokens represent rows. The others are part of rows in no order.
  const pooledOf = Uint32Array.from({ length: tokens }, (_, token) =>
    token < rows ? token : (token * 7) % rows,
  );
  const representatives = Uint32Array.from({ length: rows }, (_, row) => row);
  const unpacked = unpackRowPlaces(5, packRowPlaces(5, spans, { representatives, pooledOf }));
  const placeOf = (token: number): Place => ({ start: starts[token]!, end: spans.ends[token]! });
  const expected = Array.from({ length: rows }, (_, row) => ({
    place: placeOf(row),
    all: [...pooledOf.keys()].filter((token) => pooledOf[token] === row).map(placeOf),
  }));
  expect(unpacked).toEqual(expected);
  expect(unpacked.slice(256).some(({ all }) => all.length > 1)).toBe(true);
  expect(unpackRowPlaces(5, packRowPlaces(5, spans)).map(({ place }) => place)).toEqual(
    Array.from({ length: tokens }, (_, token) => placeOf(token)),
  );
});
