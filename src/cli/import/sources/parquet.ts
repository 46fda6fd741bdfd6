/**
 * Reads Parquet files with hyparquet, 5,000 rows at a time. Node's zlib decompresses gzip, brotli and zstd.
 *
 * hyparquet passes most types to `parsers`. It would read decimals, times, intervals and short floats as numbers that lose
 * digits or their unit, or have more digits than were written. It takes some parts of a VARIANT for others. So the
 * annotations of these types are hidden from it, and the stored values are converted here, by the schema.
 */
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import {
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  type ParquetParsers,
  type SchemaElement,
  type SchemaTree,
} from 'hyparquet';
import { CommandFailure, inputError, messageOf } from '../../failure.ts';
import { isObject } from '../../json.ts';
import type { ParsedLine } from '../../jsonl.ts';
import type { InputFile } from './input-file.ts';
import { withWideIntegers } from './arrow-schema.ts';
import { holdsBytes, isList, isMap, isVariant } from './parquet-schema.ts';
import {
  date,
  decimal,
  float16,
  float32,
  halfOf,
  integerOf,
  interval,
  json,
  plain,
  shortest,
  text,
  time,
  timestamp,
  wideInteger,
} from './parquet-values.ts';
import { variantConverter } from './parquet-variant.ts';
import type { RowFile } from './row-file.ts';

const rowsAtOnce = 5_000;

const compressors: Compressors = {
  GZIP: (input) => gunzipSync(input),
  BROTLI: (input) => brotliDecompressSync(input),
  ZSTD: (input) => zstdDecompressSync(input),
};

const parsers: Partial<ParquetParsers> = {
  timestampFromMilliseconds: (milliseconds) => timestamp(milliseconds, 3),
  timestampFromMicroseconds: (microseconds) => timestamp(microseconds, 6),
  timestampFromNanoseconds: (nanoseconds) => timestamp(nanoseconds, 9),
  dateFromDays: date,
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && text(bytes),
  jsonFromBytes: (bytes: Uint8Array | undefined) => bytes && json(bytes),
};

export async function openParquet(input: InputFile): Promise<RowFile> {
  const { name, bytes, version } = input;
  const cannotRead = (error: unknown): CommandFailure => {
    if (error instanceof CommandFailure) return error;
    const message = messageOf(error);
    const hint = /compression codec/.test(message) ? '; write it with snappy, gzip, zstd or brotli' : '';
    return inputError(`cannot read ${name}: ${message}${hint}`, error);
  };
  const file: AsyncBuffer = {
    byteLength: bytes,
    slice: async (start, end = bytes) => new Uint8Array(await input.slice(start, end)).buffer,
  };
  let metadata: FileMetaData;
  try {
    const read = await parquetMetadataAsync(file, { parsers });
    metadata = withWideIntegers(read, parquetSchema(read));
  } catch (error) {
    throw cannotRead(error);
  }
  const readable = withoutHidden(metadata);
  const columns = parquetSchema(metadata).children.map(({ element }) => element);
  const rowCount = Number(metadata.num_rows);
  return {
    name,
    bytes,
    version,
    rowCount,
    columns: columns.map(({ name: column }) => column),
    bytesColumns: columns.filter(holdsBytes).map(({ name: column }) => column),
    async *rows() {
      for (let rowStart = 0; rowStart < rowCount; rowStart += rowsAtOnce) {
        const rowEnd = Math.min(rowCount, rowStart + rowsAtOnce);
        let rows: readonly Readonly<Record<string, unknown>>[];
        try {
          rows = await parquetReadObjects({
            file,
            metadata: readable.metadata,
            compressors,
            parsers,
            rowStart,
            rowEnd,
            utf8: false,
          });
        } catch (error) {
          throw cannotRead(error);
        }
        for (const [place, row] of rows.entries()) {
          const line = rowStart + place + 1;
          const parsed = parsedRow(row, readable.convert);
          yield { line, parsed, bytesRead: Math.round((bytes * line) / rowCount) };
        }
      }
    },
  };
}

type Convert = (value: unknown) => unknown;

/** A null means that the row has no such field. */
function parsedRow(
  row: Readonly<Record<string, unknown>>,
  convert: Readonly<Record<string, Convert>>,
): ParsedLine {
  const fields: [string, unknown][] = [];
  for (const [field, stored] of Object.entries(row)) {
    try {
      const value = convert[field]?.(stored);
      if (value !== null && value !== undefined) fields.push([field, value]);
    } catch (error) {
      return { problem: `cannot read the column ${JSON.stringify(field)}: ${messageOf(error)}` };
    }
  }
  return { object: Object.fromEntries(fields) };
}

/** The metadata for hyparquet, and the conversion of each column. */
export function withoutHidden(metadata: FileMetaData): {
  readonly metadata: FileMetaData;
  readonly convert: Readonly<Record<string, Convert>>;
} {
  const { children } = parquetSchema(metadata);
  const hidden = new Set(children.flatMap(hiddenIn));
  const schema = metadata.schema.map((element) =>
    hidden.has(element) ? withoutAnnotation(element) : element,
  );
  return {
    metadata: { ...metadata, schema },
    convert: Object.fromEntries(children.map((column) => [column.element.name, converterOf(column)])),
  };
}

/** Elements whose annotation is hidden. Keys of maps keep theirs, because they become names. */
function hiddenIn(node: SchemaTree): readonly SchemaElement[] {
  const { element, children } = node;
  if (isVariant(element)) return [element, ...children.flatMap(hiddenIn)];
  if (children.length === 0) return storedConverter(element) === undefined ? [] : [element];
  if (isMap(node)) return hiddenIn(children[0]!.children[1]!);
  return children.flatMap(hiddenIn);
}

function withoutAnnotation(element: SchemaElement): SchemaElement {
  const { converted_type: _converted, logical_type: _logical, ...stored } = element;
  return stored;
}

function converterOf(node: SchemaTree): Convert {
  const own = ownConverter(node);
  return node.element.repetition_type === 'REPEATED' ? items(own) : own;
}

function ownConverter(node: SchemaTree): Convert {
  const { element, children } = node;
  const [first] = children;
  if (isVariant(element)) return variantConverter(node, ownConverter);
  if (first === undefined) return storedConverter(element) ?? plain;
  if (isList(node))
    return items(first.children.length === 0 ? ownConverter(first) : converterOf(first.children[0]!));
  if (isMap(node)) {
    const value = converterOf(first.children[1]!);
    return (map) => members(map, () => value);
  }
  const fields = new Map(children.map((child) => [child.element.name, converterOf(child)]));
  return (struct) => members(struct, (name) => fields.get(name) ?? plain);
}

function items(convert: Convert): Convert {
  return (list) => (Array.isArray(list) ? list.map(convert) : plain(list));
}

function members(object: unknown, convertOf: (name: string) => Convert): unknown {
  if (!isObject(object)) return plain(object);
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, convertOf(name)(value)]));
}

/** The conversion of a type that hyparquet returns as it is stored. */
function storedConverter(element: SchemaElement): Convert | undefined {
  const { type, converted_type: converted, logical_type: logical } = element;
  if (converted === 'DECIMAL' || logical?.type === 'DECIMAL') {
    const scale = element.scale ?? 0;
    return given((value) => decimal(integerOf(value), scale));
  }
  if (converted === 'TIME_MILLIS') return given((value) => time(integerOf(value), 3));
  if (converted === 'TIME_MICROS') return given((value) => time(integerOf(value), 6));
  if (logical?.type === 'TIME') {
    const digits = { MILLIS: 3, MICROS: 6, NANOS: 9 }[logical.unit];
    return given((value) => time(integerOf(value), digits));
  }
  if (converted === 'INTERVAL') return given((value) => interval(value as Uint8Array));
  if (logical?.type === 'INTEGER' && logical.bitWidth === 128)
    return given((value) => wideInteger(value as Uint8Array, logical.isSigned));
  if (type === 'FLOAT') return given((value) => shortest(value as number, float32));
  if (logical?.type === 'FLOAT16') return given((value) => shortest(halfOf(value as Uint8Array), float16));
  return undefined;
}

function given(convert: Convert): Convert {
  return (value) => (value === undefined || value === null ? value : convert(value));
}
