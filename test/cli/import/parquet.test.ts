/** Values of a Parquet file become JSON that is right to the digit. `write_types.py` beside the fixture writes it. */
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { FileMetaData, SchemaElement, SchemaTree } from 'hyparquet';
import { withWideIntegers } from '../../../src/cli/import/sources/arrow-schema.ts';
import { openInput } from '../../../src/cli/import/sources/input-file.ts';
import { float16, float32, shortest } from '../../../src/cli/import/sources/parquet-values.ts';
import { openParquet, withoutHidden } from '../../../src/cli/import/sources/parquet.ts';
import { announceRandom } from '../../support/running/random.ts';

const fixtures = path.resolve(import.meta.dirname, '../../fixtures/parquet');
const fixture = path.join(fixtures, 'types.parquet');

/** Name and JSON text of values that `write_variants.py` writes. */
const variants: readonly (readonly [string, string])[] = [
  ['blob', '"Af8="'],
  ['words', '"words"'],
  ['decimal', '1234567890123456789.123456789'],
  ['price', '-0.05'],
  ['time', '"01:02:03.004000"'],
  ['float', '0.1'],
  ['double', '0.1'],
  ['small', '7'],
  ['large', '1126128864018916581'],
  ['day', '"2026-11-27"'],
  ['moment', '"2026-11-27T01:02:03.500000Z"'],
  ['truth', 'true'],
  ['text', '"one"'],
  ['long', JSON.stringify('x'.repeat(70))],
  ['uuid', '"00112233-4455-6677-8899-aabbccddeeff"'],
  ['list', '[1.5,null]'],
  ['many', JSON.stringify(Array.from({ length: 300 }, (_, place) => place))],
  ['object', '{"at":"01:02:03.000000","inner":{"blob":"/w=="},"price":1.1}'],
];

/** The metadata of a file with these columns. */
function metadataOf(schema: SchemaElement[]): FileMetaData {
  return { version: 2, num_rows: 1n, row_groups: [], metadata_length: 0, schema };
}

/** Field -> JSON text of its value. */
async function rowsOf(file: string): Promise<readonly Readonly<Record<string, string>>[]> {
  const { rows } = await openParquet(await openInput(file));
  const read: Record<string, string>[] = [];
  for await (const { parsed } of rows()) {
    const object = 'object' in parsed ? parsed.object : {};
    read.push(
      Object.fromEntries(Object.entries(object).map(([field, value]) => [field, JSON.stringify(value)])),
    );
  }
  return read;
}

const wide = { name: 'n', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16 } as const;
const bits = new DataView(new ArrayBuffer(4));

describe('the shortest number that reads back', () => {
  it('of every half float', () => {
    for (let pattern = 0; pattern < 0x8000; pattern += 1) {
      bits.setUint16(0, pattern);
      expectShortest(bits.getFloat16(0), float16);
    }
  });

  it('of random floats', () => {
    const random = announceRandom('floats');
    for (let count = 0; count < 20_000; count += 1) {
      // Every tenth is very small, with few bits.
      bits.setUint32(0, random.integer(0, count % 10 === 0 ? 0x7f_ffff : 0xffff_ffff));
      expectShortest(bits.getFloat32(0), float32);
    }
  });
});

function expectShortest(float: number, type: typeof float32): void {
  const found = shortest(float, type);
  if (!Number.isFinite(float)) expect(found).toBeUndefined();
  if (found === undefined) return;
  const digits = Array.from({ length: 9 }, (_, place) => Number(float.toPrecision(place + 1)));
  const expected = digits.find((number) => type.round(number) === float);
  if (found !== expected) expect(found).toBe(expected);
}

describe('values of a Parquet file', () => {
  it.each([
    ['a decimal', 'price', ['1234567.89', '-0.05', undefined]],
    ['a decimal longer than a double', 'sum', ['12345678901234567.89', '-12345678901234567.89', '5']],
    ['a decimal without a fraction', 'count', ['12345678901234567890', undefined, undefined]],
    ['a short float, without NaN and the infinities', 'ratio', ['0.1', undefined, undefined]],
    ['a half float, without NaN', 'half', ['0.1', undefined, '-6e-8']],
    ['a double, without NaN and the infinities', 'score', [undefined, '0.1', undefined]],
    ['a long integer', 'serial', ['1126128864018916581', '2', undefined]],
    ['a day', 'day', ['"2026-11-27"', '"1969-12-31"', undefined]],
    ['milliseconds', 'ms', ['"2026-11-27T01:02:03.123Z"', undefined, undefined]],
    ['microseconds', 'us', ['"2026-11-27T01:02:03.123456Z"', '"1969-12-31T23:59:59.999999Z"', undefined]],
    ['nanoseconds', 'ns', ['"2025-11-27T01:02:03.123456789Z"', undefined, undefined]],
    ['a time in milliseconds', 'clock_ms', ['"01:02:03.004"', undefined, undefined]],
    ['a time in microseconds', 'clock_us', ['"01:02:03.000004"', undefined, undefined]],
    ['a time in nanoseconds', 'clock_ns', ['"01:02:03.000000005"', undefined, undefined]],
    ['a duration, which Parquet has as an integer', 'elapsed', ['90000000', undefined, undefined]],
    ['JSON, and text that is none', 'notes', ['{"long":1126128864018916581}', '"not JSON"', undefined]],
    ['a list', 'prices', ['[1.1,null]', '[]', undefined]],
    ['a struct', 'part', ['{"price":1.1,"days":["2026-11-27"]}', undefined, undefined]],
    ['a map', 'rates', ['{"a":1.1}', undefined, undefined]],
    ['a string, with its byte order mark', 'id', [JSON.stringify('\ufeffx'), '"x"', '"y"']],
  ])('%s', async (_, field, values) => {
    expect((await rowsOf(fixture)).map((row) => row[field])).toEqual(values);
  });

  it.each([
    ['id', ['18446744073709551617', '-5']],
    ['unsigned', [String(2n ** 127n + 1n), undefined]],
    ['list', [`[1,null,${-(2n ** 100n)}]`, '[]']],
  ])('integers of 128 bits: %s', async (field, values) => {
    expect((await rowsOf(path.join(fixtures, 'polars.parquet'))).map((row) => row[field])).toEqual(values);
  });

  it.each([
    ['no base64', '???'],
    ['a length alone', Buffer.from([255, 255, 255, 255, 4, 0, 0, 0]).toString('base64')],
    ['random bytes', 'qRkYv3N0c2lnbmVkAAAAAEFycm93IHNjaGVtYQ=='],
  ])('a schema of Arrow that is %s says nothing', (_, value) => {
    const tree: SchemaTree = {
      element: { name: 'schema', num_children: 1 },
      children: [{ element: wide, children: [], path: ['n'], count: 1 }],
      path: [],
      count: 2,
    };
    const metadata = {
      ...metadataOf([tree.element, wide]),
      key_value_metadata: [{ key: 'ARROW:schema', value }],
    };
    expect(withWideIntegers(metadata, tree)).toBe(metadata);
  });

  it.each(variants)('%s of the type VARIANT', async (name, json) => {
    const mixed = await rowsOf(path.join(fixtures, 'variants.parquet'));
    expect(mixed.find(({ id }) => id === JSON.stringify(name))?.['v']).toBe(json);
    const [shredded] = await rowsOf(path.join(fixtures, 'shredded.parquet'));
    expect(JSON.parse(shredded?.[name] ?? '')).toEqual(JSON.parse(json));
    // The members of an object have no order.
    if (name !== 'object') expect(shredded?.[name]).toBe(json);
  });

  it.each([
    ['a type that is not known', [0xfc], /VARIANT with the type 63, which is not known/],
    ['a string that is cut off', [0x0d, 0x61], /VARIANT ends early/],
    ['a list that is cut off', [0x03, 0xff, 0], /VARIANT ends early/],
    ['nothing', [], RangeError],
  ])('a VARIANT with %s is an error', (_, value, error) => {
    const { convert } = withoutHidden(
      metadataOf([
        { name: 'schema', num_children: 1 },
        { name: 'v', num_children: 2, logical_type: { type: 'VARIANT' } },
        { name: 'metadata', type: 'BYTE_ARRAY' },
        { name: 'value', type: 'BYTE_ARRAY' },
      ]),
    );
    const stored = { metadata: Uint8Array.of(1, 0, 0), value: Uint8Array.from(value) };
    expect(() => convert['v']?.(stored)).toThrow(error);
  });

  it('an interval becomes an ISO 8601 duration', () => {
    const { convert, metadata } = withoutHidden(
      metadataOf([
        { name: 'schema', num_children: 1 },
        { name: 'lag', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 12, converted_type: 'INTERVAL' },
      ]),
    );
    // hyparquet reads no column that says so.
    expect(metadata.schema[1]).not.toHaveProperty('converted_type');
    const bytes = Buffer.alloc(12);
    for (const [place, part] of [14, 3, 1500].entries()) bytes.writeUInt32LE(part, place * 4);
    expect(convert['lag']?.(new Uint8Array(bytes))).toBe('P14M3DT1.5S');
  });
});
