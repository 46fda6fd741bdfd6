/**
 * Replies of an encoder with any bytes: damaged wire messages, and messages whose fields have any value that their types allow.
 * Each is a `CorruptReply`, or the decoded arrays have the stated sizes. `TEST_SEED` repeats a run.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CorruptReply,
  decodeCounts,
  decodeInfo,
  decodeQuery,
  decodeSpans,
  DocumentCollector,
} from '../../../src/encoder/client/replies.ts';
import type { EncodedDocument, EncodedQuery } from '../../../src/encoder/protocol/contract.ts';
import { rangeFields } from '../../../src/encoder/protocol/row-places.ts';
import {
  bytesOf,
  encoderService,
  type EncodeDocumentsResponse,
  type EncodeQueriesResponse,
  type GetInfoResponse,
  type LocateTokensResponse,
  type PartMessage,
} from '../../../src/encoder/protocol/wire.ts';
import { rounds } from '../../rounds.ts';
import { damage } from '../../support/machine/file-damage.ts';
import { createRandom } from '../../support/running/random.ts';

const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const runs = { seed, numRuns: rounds({ short: 2_000, nightly: 1_000_000 }) };
const dim = 4;

const uint32 = fc.oneof(
  fc.integer({ min: 0, max: 5 }),
  fc.constantFrom(2 ** 16, 2 ** 16 + 1, 2 ** 31, 2 ** 32 - 1),
);
const float = fc.oneof(fc.constant(0.5), fc.double(), fc.constantFrom(NaN, Infinity, 1e-320));
/** Bytes of elements, sometimes with a remainder. */
const bytes = fc.oneof(
  fc
    .array(fc.constantFrom(0, 1, 2, 255, 65_536, 0xffff_ffff), { maxLength: 4 })
    .map((u) => bytesOf(Uint32Array.from(u))),
  fc.array(fc.float(), { maxLength: 12 }).map((values) => bytesOf(Float32Array.from(values))),
  fc
    .array(fc.constantFrom(0x2000, 0x7c00, 0x7e00, 0x8000), { maxLength: 6 })
    .map((u) => bytesOf(Uint16Array.from(u))),
  fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
);
const text = fc.oneof({ arbitrary: fc.constant(''), weight: 3 }, fc.string());
const timings = fc.option(fc.record({ tokenizeMs: float, queueMs: float, runMs: float, rowsMs: float }));
const query = fc.record({
  inputTokens: uint32,
  rows: uint32,
  vectors: bytes,
  offsets: bytes,
  timings,
  problem: text,
  starts: bytes,
  ends: bytes,
});
const part = fc.record({
  documentIndex: fc.integer({ min: 0, max: 3 }),
  chunkRows: bytes,
  vectors: bytes,
  scales: bytes,
  tokens: uint32,
  last: fc.boolean(),
  timings,
  problem: text,
  chunkRanges: bytes,
  rowPlaces: bytes,
});
const spans = fc.record({ starts: bytes, ends: bytes, problem: text });
const model = fc.record({
  name: text,
  version: text,
  dim: uint32,
  rowBits: uint32,
  poolFactor: uint32,
  windowTokensMax: uint32,
});

/** Returns whether it decodes. Then the result is checked. Otherwise it must be a `CorruptReply`. */
function decodes<Decoded>(decode: () => Decoded, check: (decoded: Decoded) => void): boolean {
  let decoded: Decoded;
  try {
    decoded = decode();
  } catch (error) {
    expect(error).toBeInstanceOf(CorruptReply);
    return false;
  }
  check(decoded);
  return true;
}

function checkQuery({ rows, vectors, offsets, problem, spans: places }: EncodedQuery): void {
  if (problem !== undefined) return expect([rows, vectors.length, offsets.length]).toEqual([0, 0, 0]);
  expect(rows).toBeGreaterThan(0);
  expect([vectors.length, offsets.length]).toEqual([rows * dim, rows]);
  expect([...vectors, ...offsets].every(Number.isFinite)).toBe(true);
  if (places !== undefined) expect([places.starts.length, places.ends.length]).toEqual([rows, rows]);
}

function checkDocument(document: EncodedDocument): void {
  const { chunkRows, vectors, scales, problem, inputTokens, chunkRanges, rowPlaces } = document;
  const rows = chunkRows.reduce((sum, count) => sum + count, 0);
  expect([vectors.length, scales.length]).toEqual([rows * dim, rows]);
  expect(chunkRows.every((count) => count >= 1)).toBe(true);
  expect(scales.every((bits) => bits < 0x7c00)).toBe(true);
  const lengths = [...(chunkRanges ?? [])].filter((_, at) => at % rangeFields === 2);
  expect(lengths.length).toBe(chunkRanges === undefined ? 0 : chunkRows.length);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(rowPlaces?.length ?? 0);
  if (problem === undefined) expect(chunkRows.length > 0).toBe(inputTokens > 0);
}

function checkSpans(reply: LocateTokensResponse): void {
  decodes(
    () => decodeSpans(reply),
    ({ starts, ends }) =>
      expect([starts.byteLength, ends.byteLength]).toEqual([reply.starts.length, reply.starts.length]),
  );
}

/** Returns whether all parts were accepted. */
function collect(parts: readonly PartMessage[]): boolean {
  const collector = new DocumentCollector({ dim, rowBits: 8 }, [5, 0, 2]);
  return parts.every((message) =>
    decodes(
      () => collector.add(message),
      (document) => {
        expect([message.chunkRows.length % 4, message.scales.length % 2]).toEqual([0, 0]);
        if (document !== undefined) checkDocument(document);
      },
    ),
  );
}

const honestQuery = {
  inputTokens: 1,
  rows: 2,
  vectors: bytesOf(new Float32Array(2 * dim).fill(0.1)),
  offsets: Buffer.alloc(8),
  timings: { tokenizeMs: 1, queueMs: 1, runMs: 1, rowsMs: 0 },
  problem: '',
  starts: bytesOf(Uint32Array.of(0, 0)),
  ends: bytesOf(Uint32Array.of(0, 3)),
};
const honestPart = {
  documentIndex: 0,
  chunkRows: bytesOf(Uint32Array.of(1, 1)),
  vectors: Buffer.alloc(2 * dim),
  scales: bytesOf(Uint16Array.of(0x2000, 0x2000)),
  tokens: 4,
  last: true,
  timings: null,
  problem: '',
  chunkRanges: bytesOf(Uint32Array.of(0, 2, 1, 3, 300, 4)),
  rowPlaces: Buffer.of(0x02, 0x0f, 0x00, 0xa9, 0x02),
};
const honestSpans = {
  starts: bytesOf(Uint32Array.of(0, 6)),
  ends: bytesOf(Uint32Array.of(5, 11)),
  problem: '',
};

describe(`replies (seed ${seed})`, () => {
  it('with fields of any value', () => {
    let taken = 0;
    fc.assert(
      fc.property(
        query,
        fc.array(part, { maxLength: 4 }),
        fc.array(model),
        bytes,
        spans,
        (reply, parts, models, counts, located) => {
          taken += Number(decodes(() => decodeQuery(reply as never, dim), checkQuery));
          taken += Number(parts.length > 0 && collect(parts));
          decodes(
            () => decodeInfo({ models } as never),
            (known) => expect(known.every((each) => each.dim >= 1 && each.poolFactor >= 1)).toBe(true),
          );
          decodes(
            () => decodeCounts(counts, 2),
            (found) => expect(found).toHaveLength(2),
          );
          checkSpans(located);
        },
      ),
      runs,
    );
    expect(taken).toBeGreaterThan(runs.numRuns / 100);
  });

  it('with fields of honest ones and one of any value', () => {
    const one = <Message extends object>(honest: Message, arbitrary: fc.Arbitrary<Message>) =>
      fc
        .tuple(arbitrary, fc.constantFrom(...Object.keys(honest)))
        .map(([any, key]) => ({ ...honest, [key]: any[key as keyof Message] }));
    fc.assert(
      fc.property(
        one(honestQuery, query as never),
        one(honestPart, part as never),
        one(honestSpans, spans as never),
        (reply, message, located) => {
          decodes(() => decodeQuery(reply, dim), checkQuery);
          collect([message]);
          checkSpans(located);
        },
      ),
      runs,
    );
  });

  it('with damaged bytes', () => {
    const {
      EncodeQueries: encodeQueries,
      EncodeDocuments: encodeDocuments,
      GetInfo: getInfo,
      LocateTokens: locateTokens,
    } = encoderService;
    const answers = encodeQueries.responseSerialize({ items: [{ number: 1, reply: honestQuery }] });
    const parts = encodeDocuments.responseSerialize({ part: honestPart });
    const info = getInfo.responseSerialize({
      models: [{ name: 'a', version: '1', dim, windowTokensMax: 8 }],
    });
    const places = locateTokens.responseSerialize(honestSpans);
    const random = createRandom(seed);
    let taken = 0;
    for (let round = 0; round < runs.numRuns; round += 1) {
      const reply = parsed<EncodeQueriesResponse>(() =>
        encodeQueries.responseDeserialize(damage(random, answers).bytes),
      );
      for (const { reply: item } of reply?.items ?? [])
        if (item) taken += Number(decodes(() => decodeQuery(item, dim), checkQuery));
      const message = parsed<EncodeDocumentsResponse>(() =>
        encodeDocuments.responseDeserialize(damage(random, parts).bytes),
      );
      if (message?.part) taken += Number(collect([message.part]));
      const located = parsed<LocateTokensResponse>(() =>
        locateTokens.responseDeserialize(damage(random, places).bytes),
      );
      if (located !== undefined) checkSpans(located);
      const known = parsed<GetInfoResponse>(() => getInfo.responseDeserialize(damage(random, info).bytes));
      if (known !== undefined)
        decodes(
          () => decodeInfo(known),
          (models) => expect(models.every((each) => each.dim >= 1 && each.poolFactor >= 1)).toBe(true),
        );
    }
    expect(taken).toBeGreaterThan(runs.numRuns / 100);
  });
});

/** Bytes that are no message may give any error, because it fails the call. */
function parsed<Message>(parse: () => Message): Message | undefined {
  try {
    return parse();
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
    return undefined;
  }
}
