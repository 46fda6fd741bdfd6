/**
 * CSV (RFC 4180) with a header line, plain or gzipped. A first line `sep=;`, as Excel writes it, names the delimiter.
 * Without it, the delimiter is the comma, semicolon or tab with which the header names an identifier and a text. All values
 * are strings here. An empty cell means that the row has no such field.
 */
import { pipeline, Readable } from 'node:stream';
import { parse, type Info } from 'csv-parse';
import { parse as parseAtOnce } from 'csv-parse/sync';
import { readBlocks, type Block } from '../../blocks.ts';
import { CommandFailure, inputError, messageOf } from '../../failure.ts';
import { sizeOf, streamOf, type InputFile } from './input-file.ts';
import type { FileRow, RowFile } from './row-file.ts';

export interface CsvInput {
  readonly input: InputFile | Readable;
  readonly name: string;
  /** `undefined` = found by the header. */
  readonly delimiter?: string | undefined;
  /** Whether these columns make a document. */
  readonly fits: (columns: readonly string[]) => boolean;
}

/** Bounds one record, and the header. */
const recordCharactersMax = 16 * 1024 * 1024;
/** The header must be within so many characters. */
const beginningCharacters = 64 * 1024;

const settings = { relax_column_count: true, skip_empty_lines: true, max_record_size: recordCharactersMax };

interface Record {
  readonly record: readonly string[];
  readonly info: Info;
}

/** Reads the header. For its rows, a file is opened again, and a stream goes on. */
export async function openCsv(csv: CsvInput): Promise<RowFile> {
  const { input, name } = csv;
  const isStream = input instanceof Readable;
  const opened = await openRecords(csv);
  if (!isStream) await opened.records.return(undefined);
  return {
    name,
    ...sizeOf(input),
    columns: opened.columns,
    isText: true,
    async *rows() {
      const { columns, records, linesBefore, bytesRead } = isStream ? opened : await openRecords(csv);
      for await (const { record, info } of records) {
        yield { line: linesBefore + info.lines, parsed: rowOf(columns, record), bytesRead: bytesRead() };
      }
    },
  };
}

async function openRecords(csv: CsvInput) {
  const { name } = csv;
  const text = await Beginning.of(textOf(readBlocks(streamOf(csv.input), name), name));
  const separator = /^"?sep=(.)"?(?:\r\n|\n|\r|$)/i.exec(text.beginning);
  if (separator !== null) text.beginning = text.beginning.slice(separator[0].length);
  const delimiter = separator?.[1] ?? csv.delimiter ?? delimiterOf(text.beginning, csv.fits);
  const records = recordsOf(text.whole(), parse({ ...settings, delimiter, info: true }), name);
  const header = await records.next();
  if (header.done === true) throw inputError(`${name} is empty`);
  const columns = namesIn(header.value.record);
  const seen = new Set<string>();
  const twice = columns.find((column) => seen.size === seen.add(column).size);
  if (twice !== undefined) {
    await records.return(undefined);
    throw inputError(`${name}: the header names the column ${JSON.stringify(twice)} twice`);
  }
  return { columns, records, linesBefore: separator === null ? 0 : 1, bytesRead: () => text.bytesRead };
}

interface TextPart {
  readonly text: string;
  readonly bytesRead: number;
}

/** A text whose beginning can be inspected before it is read. */
class Beginning {
  /** Without a byte order mark. */
  beginning = '';
  bytesRead = 0;
  readonly #parts: AsyncGenerator<TextPart>;

  private constructor(parts: AsyncGenerator<TextPart>) {
    this.#parts = parts;
  }

  static async of(parts: AsyncGenerator<TextPart>): Promise<Beginning> {
    const text = new Beginning(parts);
    while (text.beginning.length < beginningCharacters) {
      const next = await parts.next();
      if (next.done === true) break;
      text.beginning += next.value.text;
      text.bytesRead = next.value.bytesRead;
    }
    text.beginning = text.beginning.replace(/^\uFEFF/, '');
    return text;
  }

  async *whole(): AsyncGenerator<string> {
    try {
      if (this.beginning !== '') yield this.beginning;
      for await (const { text, bytesRead } of this.#parts) {
        this.bytesRead = bytesRead;
        yield text;
      }
    } finally {
      await this.#parts.return(undefined);
    }
  }
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
    throw inputError(`cannot read ${name}: ${messageOf(error)}`, error);
  }
}

async function* textOf(blocks: AsyncGenerator<Block>, name: string): AsyncGenerator<TextPart> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    for await (const { bytes, bytesRead } of blocks) {
      yield { text: decoder.decode(bytes, { stream: true }), bytesRead };
    }
    decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw inputError(`${name} is not valid UTF-8: save it with that encoding`, error);
  }
}

/** The delimiter that gives the most columns. Delimiters whose columns make a document go first. */
function delimiterOf(beginning: string, fits: CsvInput['fits']): string {
  const candidates = [',', ';', '\t'].map((delimiter) => ({
    delimiter,
    columns: headerOf(beginning, delimiter),
  }));
  const fitting = candidates.filter(({ columns }) => fits(columns));
  const [best] = (fitting.length > 0 ? fitting : candidates).toSorted(
    (one, other) => other.columns.length - one.columns.length,
  );
  return best!.delimiter;
}

function headerOf(beginning: string, delimiter: string): readonly string[] {
  try {
    const [header = []] = parseAtOnce(beginning, { ...settings, delimiter, to: 1 });
    return namesIn(header);
  } catch {
    return [];
  }
}

function namesIn(header: readonly string[]): readonly string[] {
  return header.map((column) => column.trim());
}

function rowOf(columns: readonly string[], record: readonly string[]): FileRow['parsed'] {
  if (record.length !== columns.length)
    return { problem: `the line has ${record.length} fields, the header ${columns.length}` };
  const cells = columns.map((column, place) => [column, record[place] ?? ''] as const);
  return { object: Object.fromEntries(cells.filter(([, cell]) => cell !== '')) };
}
