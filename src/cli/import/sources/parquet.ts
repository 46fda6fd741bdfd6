/**
 * Parquet files, read five thousand rows at a time (hyparquet; zlib of Node decompresses what it does not). Null is a
 * field that is not there.
 */
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
import { parsers, withoutHidden } from './parquet-values.ts';
import type { RowFile } from './row-file.ts';

const rowsAtOnce = 5_000;

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
    metadata = await parquetMetadataAsync(file, { parsers });
  } catch (error) {
    throw cannotRead(error);
  }
  const readable = withoutHidden(metadata);
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
          const fields = Object.entries(row).map(
            ([field, value]) => [field, readable.convert[field]?.(value)] as const,
          );
          const object = Object.fromEntries(
            fields.filter(([, value]) => value !== null && value !== undefined),
          );
          yield { line, parsed: { object }, bytesRead: Math.round((file.byteLength * line) / rowCount) };
        }
      }
    },
  };
}
