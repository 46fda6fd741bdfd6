/** Ranges over the values of one large segment, as they come: some in order already, some not yet, some not known. And counts of values. */
import path from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEngine, type NativeCounts, type NativeIndex } from '../../src/index/engine/native.ts';
import { plainNumber } from '../../src/index/terms/canonical-json.ts';
import { conditionOf } from '../../src/index/terms/condition.ts';
import { metadataTerms } from '../../src/index/terms/metadata-terms.ts';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import { Clusters, columns, noLifespans, temporaryDirectory } from './sample.ts';
import { hangMs } from '../support/running/eventually.ts';

const records = 9_000;
const random = seededRandom(17);
const below = (count: number): number => Math.floor(random() * count);
const directory = temporaryDirectory();
const engine = createEngine({ threads: 2, kernel: 'auto' });
let index: NativeIndex;

/** One a record; some have none. */
const values = Array.from({ length: records }, (): number | string | undefined => {
  const kind = below(10);
  if (kind === 0) return undefined;
  if (kind < 6) return below(2) === 0 ? below(5_000) - 2_500 : (below(1_000_000) - 500_000) / 128;
  return String.fromCodePoint(...Array.from({ length: 1 + below(12) }, () => 0x61 + below(3)));
});

beforeAll(async () => {
  index = engine.createIndex({ dim: 4, exactTokenVectorsMax: 0 });
  await index.createSegment(1, path.join(directory.path, '1.seg'));
  const made = new Clusters(random, 4, 2);
  for (let record = 0; record < records; record += 1) await index.append(1, made.record(record + 1, [1]));
  index.publish(
    1,
    columns(
      1,
      Array.from({ length: records }, (_, record) => record),
    ),
    noLifespans,
  );
});
afterAll(() => {
  index.close();
  engine.close();
  directory[Symbol.dispose]();
});

const where = (range: object) => conditionOf(JSON.stringify({ v: range }), 'where')!;
const ask = (range: object) => index.matching({ where: where(range), generation: 1, timeoutMs: hangMs });

it('are exact after every part of them, and asked for where a part is missing', async () => {
  await expect(ask({ gt: 0 })).rejects.toMatchObject({ code: 'values_missing' });
  for (let first = 0; first < records; first += 1_500) {
    const lacking = await index.recordsWithoutValues(1, 1, { where: where({ gt: 0 }) });
    expect([lacking.records.length, lacking.records[0]]).toEqual([records - first, first]);
    expect(lacking.versionIds[0]).toBe(first + 1);
    const part = lacking.records.subarray(0, 1_500);
    const objects = Array.from(part, (record) => JSON.stringify({ w: 0, v: values[record] }));
    await index.addValues(1, { where: where({ gt: 0 }) }, part, objects);
    if (first + 1_500 < records)
      await expect(ask({ gt: 0 })).rejects.toMatchObject({ code: 'values_missing' });
  }
  const compares = {
    gt: (a: number | string, b: number | string) => a > b,
    gte: (a: number | string, b: number | string) => a >= b,
    lt: (a: number | string, b: number | string) => a < b,
    lte: (a: number | string, b: number | string) => a <= b,
  };
  for (let round = 0; round < 400; round += 1) {
    const one = values[below(records)];
    const other = values[below(records)];
    if (one === undefined) continue;
    const low = below(2) === 0 ? 'gt' : 'gte';
    const high = below(2) === 0 ? 'lt' : 'lte';
    const range = { [low]: one, ...(typeof one === typeof other && below(3) > 0 ? { [high]: other } : {}) };
    const expected = values.flatMap((value, record) => {
      const holds = Object.entries(range).every(
        ([operator, bound]) =>
          typeof value === typeof bound && compares[operator as keyof typeof compares](value!, bound!),
      );
      return holds ? [record + 1] : [];
    });
    expect([range, [...(await ask(range))]]).toEqual([range, expected]);
  }
});

it('are found by hundreds of conditions at once, with postings and without', async () => {
  // More than are read in one pass over so many records, of small sets of them.
  const count = 150_000;
  const conditions = 250;
  using scratch = temporaryDirectory();
  const large = engine.createIndex({ dim: 4, exactTokenVectorsMax: 0 });
  await large.createSegment(1, path.join(scratch.path, '1.seg'));
  const terms = Array.from({ length: 400 }, (_, value) => metadataTerms(`{"v":${value}}`));
  const record = { chunkRows: Uint32Array.of(1), vectors: new Int8Array(4), scales: new Uint16Array(1) };
  for (let first = 0; first < count; first += 1_000) {
    const part = Array.from({ length: 1_000 }, (_, place) => first + place);
    await Promise.all(
      part.map((place) =>
        large.append(1, { ...record, versionId: place + 1, terms: terms[place % terms.length]! }),
      ),
    );
    large.publish(first + 1, columns(1, part), noLifespans);
  }
  const anyOf = Array.from({ length: conditions }, (_, value) => ({ v: value }));
  const one = conditionOf(JSON.stringify({ any_of: anyOf }), 'where')!;
  const all = conditionOf(
    JSON.stringify({ v: { in: [conditions, 300] }, any_of: [{ v: 300 }, ...anyOf] }),
    'where',
  )!;
  const found = async (asked: Uint8Array) => [
    ...(await large.matching({ where: asked, generation: count, timeoutMs: hangMs })),
  ];
  const wanted = (meets: (value: number) => boolean) =>
    Array.from({ length: count }, (_, place) => place + 1).filter((id) => meets((id - 1) % terms.length));
  const check = async (): Promise<void> => {
    expect(await found(one)).toEqual(wanted((value) => value < conditions));
    expect(await found(all)).toEqual(wanted((value) => value === 300));
  };
  await check();
  await large.seal(1);
  await check();
  large.close();
});

it('are compared by the deepest condition that a request can hold', async () => {
  const nested = (levels: number): string =>
    levels === 0 ? '{"in":[1,"a"]}' : `{"in":[${levels}],"not":${nested(levels - 1)}}`;
  const field = (levels: number): string => `"w":2,"v":${nested(levels)}`;
  // Sixteen levels of JSON: four objects with the arrays between them, and those of the innermost field.
  const deepest = `{${field(0)},"any_of":[{"v":5},{${field(0)},"any_of":[{"v":6},{${field(0)},"any_of":[{"v":7},{${field(8)}}]}]}]}`;
  const asked = { where: conditionOf(deepest, 'where')!, generation: 1, timeoutMs: hangMs };
  expect(await index.matching(asked)).toHaveLength(0);
});

it.each([
  ['more sets than it may hold', [...Array.from({ length: 33 }, () => [4, 0, 0]).flat(), 4, 33, 0]],
  ['nothing', []],
  ['a step of no kind', [9]],
  ['sets that are not there', [5]],
  ['two sets', [3, 0, 0, 3, 0, 0]],
  ['an end too early', [1, 1, 0, 7]],
  ['a range without bounds', [2, 0, 3, 0, 34, 97, 34, 0, 0, 0, 0]],
  ['a bound that is no date', [2, 17, 3, 0, 34, 97, 34, 4, 0, 116, 114, 117, 101, 0, 0]],
])('refuse a condition of %s', async (_name, bytes) => {
  const matching = { where: Uint8Array.from(bytes), generation: 1, timeoutMs: 1_000 };
  expect(() => index.matching(matching)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
});

/** Counts of values are compared with a plain count over parsed metadata. */
const clusters = new Clusters(seededRandom(5), 4, 2);
let files = 0;
async function countsOf(documents: readonly string[], field: string, limit = 100) {
  const counted = engine.createIndex({ dim: 4, exactTokenVectorsMax: 0 });
  await counted.createSegment(1, path.join(directory.path, `count-${(files += 1)}.seg`));
  for (const [record] of documents.entries()) await counted.append(1, clusters.record(record + 1, [1]));
  const all = documents.map((_, record) => record);
  counted.publish(1, columns(1, all), noLifespans);
  const fields = [JSON.stringify(field)];
  await counted.addValues(1, { fields }, Uint32Array.from(all), documents);
  const counting = { generation: 1, timeoutMs: hangMs, fields, limit, distinctMax: 1_000, bytesMax: 100_000 };
  const { facets } = (await counted.countValues(counting)) as NativeCounts;
  const { distinct, tokens, keys, counts, versionIds } = facets[0]!;
  const shown = Array.from(counts, (count, place) => {
    const document = documents[versionIds[place]! - 1]!;
    const key = keys[place];
    return [plainNumber(tokens[place] ?? counted.findValue(document, fields[0]!, key!)!), count];
  });
  counted.close();
  return { distinct, values: shown };
}

const leaf = fc.oneof(
  fc.integer({ min: -3, max: 12 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  fc.constantFrom(
    'a',
    'b',
    'ab',
    'ab!',
    '"',
    '\\',
    '',
    '\uffee',
    '😀',
    '\ud800',
    '\n',
    'é',
    true,
    false,
    null,
  ),
  fc.constantFrom('x'.repeat(256), 'x'.repeat(257), 'é'.repeat(200)),
  fc.string({ unit: 'grapheme', maxLength: 3 }),
);
const value = fc.oneof(leaf, fc.array(leaf, { maxLength: 4 }));
const document = fc.oneof(fc.record({ field: value }), fc.record({ other: value }));

const kindOf = (one: unknown): number => (typeof one === 'number' ? 0 : typeof one === 'string' ? 1 : 2);

function compareValues(one: unknown, other: unknown): number {
  if (kindOf(one) !== kindOf(other)) return kindOf(one) - kindOf(other);
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  const [first, second] = [one, other].map((each) =>
    Array.from(String(each), (point) => point.codePointAt(0)!),
  );
  const place = first!.findIndex((point, at) => point !== second![at]);
  if (place === -1) return first!.length - second!.length;
  return place >= second!.length ? 1 : first![place]! - second![place]!;
}

describe('counting values', () => {
  it('gives what a plain count gives, in the stated order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(document, { maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        async (documents, limit) => {
          const plain = new Map<unknown, number>();
          for (const one of documents) {
            if (!('field' in one)) continue;
            const items = Array.isArray(one.field)
              ? new Set(one.field.map((item) => (item === 0 ? 0 : item)))
              : [one.field];
            for (const each of items) plain.set(each, (plain.get(each) ?? 0) + 1);
          }
          const expected = [...plain]
            .toSorted(([one, count], [other, otherCount]) => otherCount - count || compareValues(one, other))
            .slice(0, limit)
            .map(([each, count]) => [JSON.stringify(each), count]);
          const texts = documents.map((one) => JSON.stringify(one));
          expect(await countsOf(texts, 'field', limit)).toEqual({ distinct: plain.size, values: expected });
        },
      ),
    );
  });

  it('compares as filters do: by exact values, whatever their spelling', async () => {
    const documents = [
      '{"n":1}',
      '{"n":[1.0,10e-1,1]}',
      '{"n":"\\u0031"}',
      '{"n":"1"}',
      '{"n":9007199254740993}',
      '{"n":9007199254740992}',
      '{"n":1e400}',
      '{"n":{"b":1,"a":2}}',
      '{"n":{"a":2.0,"b":1}}',
      '{"n":[]}',
      '{"n":[[2,1],[2,1]]}',
      '{"n":7,"n":null}',
    ];
    expect(await countsOf(documents, 'n')).toEqual({
      distinct: 8,
      values: [
        ['1', 2],
        ['"1"', 2],
        ['{"a":2,"b":1}', 2],
        ['9007199254740992', 1],
        ['9007199254740993', 1],
        ['1e400', 1],
        ['[2,1]', 1],
        ['null', 1],
      ],
    });
  });
});
