/** One file of documents, whatever its format: what is known of it before it is read, and its rows. */
import { openSync, readSync, closeSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { readBlocks } from '../../blocks.ts';
import { CommandFailure, messageOf } from '../../failure.ts';
import { beginsWithArray, readElements } from '../../json-array.ts';
import { parseLine, readLines, type ParsedLine } from '../../jsonl.ts';
import { openCsv } from './csv.ts';

export interface FileRow {
  /** Line of a text file, element of a JSON array, row of a Parquet file; counted from 1. */
  readonly line: number;
  readonly parsed: ParsedLine;
  /** Counts bytes of the file, so far. */
  readonly bytesRead: number;
}

export interface RowFile {
  /** As messages call it. */
  readonly name: string;
  /** 0 = unknown. */
  readonly bytes: number;
  /** Names of the columns, where the format fixes them. */
  readonly columns?: readonly string[];
  /** All values are strings, whatever they mean. */
  readonly isText?: boolean;
  /** Reads from the beginning; once where it is standard input. */
  readonly rows: () => AsyncGenerator<FileRow>;
}

export type Format = 'jsonl' | 'csv' | 'parquet';

export interface Reading {
  /** Absent: found by the file's name. */
  readonly format: Format | undefined;
  /** Whether a document can come of these columns. */
  readonly fits: (columns: readonly string[]) => boolean;
}

/** The file must be there; a `CommandFailure` says what is wrong with it. */
export async function openRowFile(file: string, { format: asked, fits }: Reading): Promise<RowFile> {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new CommandFailure('input_error', `${file} does not exist`);
  if (!stats.isFile()) throw new CommandFailure('input_error', `${file} is not a file`);
  const beginning = beginningOf(file);
  if (beginning.startsWith('version https://git-lfs')) {
    throw new CommandFailure(
      'input_error',
      `${file} is a pointer of Git LFS, not the file itself: fetch it with "git lfs pull"`,
    );
  }
  const isParquet = beginning.startsWith('PAR1');
  const format = asked ?? formatOf(file) ?? (isParquet ? 'parquet' : 'jsonl');
  if (isParquet && format !== 'parquet') {
    throw new CommandFailure('input_error', `${file} is a Parquet file, not ${format}: --format parquet`);
  }
  if (format === 'parquet') {
    const { openParquet } = await import('./parquet.ts');
    return openParquet(file);
  }
  return format === 'csv'
    ? openCsv({ input: file, name: file, bytes: stats.size, delimiter: delimiterBy(file), fits })
    : jsonFile(file, stats.size, file);
}

export async function openRowStream(stream: Readable, { format, fits }: Reading): Promise<RowFile> {
  const name = 'standard input';
  if (format === 'parquet') {
    throw new CommandFailure(
      'usage_error',
      'a Parquet file is read from its end: give its path, not standard input',
    );
  }
  return format === 'csv' ? openCsv({ input: stream, name, bytes: 0, fits }) : jsonFile(name, 0, stream);
}

/** By its ending. */
export function formatOf(file: string): Format | undefined {
  const ending = endingOf(file);
  if (/^\.(jsonl|ndjson|json)$/.test(ending)) return 'jsonl';
  if (/^\.(csv|tsv)$/.test(ending)) return 'csv';
  return ending === '.parquet' ? 'parquet' : undefined;
}

function endingOf(file: string): string {
  return path.extname(file.toLowerCase().replace(/\.gz$/, ''));
}

/** Commas of a tab file belong to its texts. */
function delimiterBy(file: string): string | undefined {
  return endingOf(file) === '.tsv' ? '\t' : undefined;
}

/** A line is a row; in a file that is one array, an element is. */
function jsonFile(name: string, bytes: number, input: string | Readable): RowFile {
  return {
    name,
    bytes,
    async *rows() {
      const { isArray, blocks } = await beginsWithArray(readBlocks(input, name));
      for await (const line of isArray ? readElements(blocks, name) : readLines(name, { blocks })) {
        yield { line: line.number, parsed: parseLine(line), bytesRead: line.fileBytesRead };
      }
    },
  };
}

function beginningOf(file: string): string {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const bytes = Buffer.alloc(64);
    const length = readSync(descriptor, bytes, 0, bytes.length, 0);
    return bytes.toString('latin1', 0, length);
  } catch (error) {
    throw new CommandFailure('input_error', `cannot read ${file}: ${messageOf(error)}`, { cause: error });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
