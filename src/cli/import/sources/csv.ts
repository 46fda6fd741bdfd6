/**
 * CSV (RFC 4180) with a header line, plain or gzipped. Fields are separated by what separates the header's: a comma, a
 * semicolon or a tab. All values are strings; an empty cell is a field that is not there. `metadata` may hold a JSON object.
 */
import { pipeline, Readable } from 'node:stream';
import { parse, type Info } from 'csv-parse';
import { readBlocks, type Block } from '../../blocks.ts';
import { CommandFailure, messageOf } from '../../failure.ts';
import { isObject, parseJson } from '../../json.ts';
import type { FileRow, RowFile } from './row-file.ts';

export interface CsvInput {
  /** Path, or the stream itself. */
  readonly input: string | Readable;
  readonly name: string;
  readonly bytes: number;
}

/** Bounds one record, and the header. */
const recordCharactersMax = 16 * 1024 * 1024;

interface Record {
  readonly record: readonly string[];
  readonly info: Info;
}

/** Reads the header; a file is opened anew for its rows, a stream goes on. */
export async function openCsv({ input, name, bytes }: CsvInput): Promise<RowFile> {
  const opened = await openRecords(input, name);
  if (typeof input === 'string') await opened.records.return(undefined);
  return {
    name,
    bytes,
    columns: opened.columns,
    async *rows() {
      const { columns, records, bytesRead } =
        typeof input === 'string' ? await openRecords(input, name) : opened;
      for await (const { record, info } of records) {
        yield { line: info.lines, parsed: rowOf(columns, record), bytesRead: bytesRead() };
      }
    },
  };
}

async function openRecords(input: string | Readable, name: string) {
  const blocks = readBlocks(input, name);
  const text = textOf(blocks, name);
  const first = await text.next();
  let bytesRead = 0;
  const whole = async function* (): AsyncGenerator<string> {
    if (first.done === true) return;
    yield first.value.text;
    for await (const part of text) {
      bytesRead = part.bytesRead;
      yield part.text;
    }
  };
  const parser = parse({
    bom: true,
    delimiter: first.done === true ? ',' : delimiterOf(first.value.text),
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: recordCharactersMax,
  });
  const records = recordsOf(whole(), parser, name);
  const header = await records.next();
  if (header.done === true) throw new CommandFailure('input_error', `${name} is empty`);
  const columns = header.value.record.map((column) => column.trim());
  const seen = new Set<string>();
  const twice = columns.find((column) => seen.size === seen.add(column).size);
  if (twice !== undefined) {
    await records.return(undefined);
    throw new CommandFailure(
      'input_error',
      `${name}: the header names the column ${JSON.stringify(twice)} twice`,
    );
  }
  return { columns, records, bytesRead: () => bytesRead };
}

async function* recordsOf(
  text: AsyncGenerator<string>,
  parser: ReturnType<typeof parse>,
  name: string,
): AsyncGenerator<Record> {
  try {
    const records = pipeline(Readable.from(text), parser, () => {});
    for await (const record of records) yield record as Record;
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure('input_error', `cannot read ${name}: ${messageOf(error)}`, { cause: error });
  }
}

async function* textOf(
  blocks: AsyncGenerator<Block>,
  name: string,
): AsyncGenerator<{ readonly text: string; readonly bytesRead: number }> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    for await (const { bytes, bytesRead } of blocks) {
      yield { text: decoder.decode(bytes, { stream: true }), bytesRead };
    }
    decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CommandFailure('input_error', `${name} is not valid UTF-8: save it with that encoding`, {
      cause: error,
    });
  }
}

function delimiterOf(beginning: string): string {
  const [header = ''] = beginning.split('\n');
  const count = (delimiter: string): number => header.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, next) => (count(next) > count(best) ? next : best));
}

function rowOf(columns: readonly string[], record: readonly string[]): FileRow['parsed'] {
  if (record.length !== columns.length) {
    return { problem: `the line has ${record.length} fields, the header ${columns.length}` };
  }
  const cells = columns.map((column, place) => [column, record[place] ?? ''] as const);
  const object = Object.fromEntries<unknown>(cells.filter(([, cell]) => cell !== ''));
  const metadata = object['metadata'];
  return { object: typeof metadata === 'string' ? { ...object, metadata: parsed(metadata) } : object };
}

/** A cell that holds no JSON object stays a string, which no metadata may be. */
function parsed(metadata: string): unknown {
  try {
    const value = parseJson(metadata);
    return isObject(value) ? value : metadata;
  } catch {
    return metadata;
  }
}
