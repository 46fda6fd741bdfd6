/**
 * Parquet files, read five thousand rows at a time (hyparquet; zlib of Node decompresses what it does not). Null is a
 * field that is not there, a timestamp becomes ISO 8601, and bytes that are no text become base64.
 */
import { isUtf8 } from 'node:buffer';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import {
  asyncBufferFromFile,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type Compressors,
  type FileMetaData,
} from 'hyparquet';
import { CommandFailure, messageOf } from '../../failure.ts';
import { isObject, parseJson } from '../../json.ts';
import type { RowFile } from './row-file.ts';

const rowsAtOnce = 5_000;
const decoder = new TextDecoder();

const compressors: Compressors = {
  GZIP: (input) => gunzipSync(input),
  BROTLI: (input) => brotliDecompressSync(input),
  ZSTD: (input) => zstdDecompressSync(input),
};

export async function openParquet(name: string): Promise<RowFile> {
  const cannotRead = (error: unknown): CommandFailure => {
    const message = messageOf(error);
    const hint = /compression codec/.test(message) ? '; write it with snappy, gzip, zstd or brotli' : '';
    return new CommandFailure('input_error', `cannot read ${name}: ${message}${hint}`, { cause: error });
  };
  const file = await asyncBufferFromFile(name);
  let metadata: FileMetaData;
  try {
    metadata = await parquetMetadataAsync(file);
  } catch (error) {
    throw cannotRead(error);
  }
  const rowCount = Number(metadata.num_rows);
  return {
    name,
    bytes: file.byteLength,
    columns: parquetSchema(metadata).children.map(({ element }) => element.name),
    async *rows() {
      for (let rowStart = 0; rowStart < rowCount; rowStart += rowsAtOnce) {
        const rowEnd = Math.min(rowCount, rowStart + rowsAtOnce);
        let rows: readonly Readonly<Record<string, unknown>>[];
        try {
          rows = await parquetReadObjects({ file, metadata, compressors, rowStart, rowEnd, utf8: false });
        } catch (error) {
          throw cannotRead(error);
        }
        for (const [place, row] of rows.entries()) {
          const line = rowStart + place + 1;
          const fields = Object.entries(row).filter(([, value]) => value !== null && value !== undefined);
          const object = Object.fromEntries(fields.map(([field, value]) => [field, plain(value)]));
          yield { line, parsed: { object }, bytesRead: Math.round((file.byteLength * line) / rowCount) };
        }
      }
    },
  };
}

/** As JSON has it; integers keep their digits. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const exact = Number(value);
    return Number.isSafeInteger(exact) ? exact : parseJson(String(value));
  }
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array)
    return isUtf8(value) ? decoder.decode(value) : Buffer.from(value).toString('base64');
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, plain(inner)]));
}
