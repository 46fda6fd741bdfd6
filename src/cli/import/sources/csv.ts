/**
 * CSV (RFC 4180) with a header line, plain or gzipped. A first line `sep=;`, as Excel writes it, names the delimiter.
 * Without it, the delimiter is the comma, semicolon or tab with which the header names an identifier and a text. All values
 * are strings here. An empty cell means that the row has no such field. Where tabs separate the cells (TSV), nothing is
 * quoted, so each line is a row and keeps its quotation marks. Some programs quote there too, which the header shows.
 */
import { Readable } from 'node:stream';
import { readBlocks, type Block } from '../../blocks.ts';
import { inputError } from '../../failure.ts';
import { readRecords, type RecordFormat } from './csv-records.ts';
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

/** The header must be within so many characters. */
const beginningCharacters = 64 * 1024;

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
      for await (const record of records) {
        const row = { line: linesBefore + record.line, bytesRead: bytesRead() };
        if ('problem' in record) yield { ...row, parsed: record };
        else yield { ...row, parsed: rowOf(columns, record.cells), remark: record.remark };
      }
    },
  };
}

async function openRecords(csv: CsvInput) {
  const { name } = csv;
  const text = await Beginning.of(textOf(readBlocks(streamOf(csv.input), name), name));
  const separator = /^"?sep=(.)"?(?:\r\n|\n|\r|$)/i.exec(text.beginning);
  if (separator !== null) text.beginning = text.beginning.slice(separator[0].length);
  const delimiter = separator?.[1] ?? csv.delimiter ?? (await delimiterOf(text.beginning, csv.fits));
  const records = readRecords(text.whole(), formatOf(text.beginning, delimiter));
  const refuse = async (reason: string): Promise<never> => {
    await records.return(undefined);
    throw inputError(`${name}${reason}`);
  };
  const header = await records.next();
  if (header.done === true) return refuse(' is empty');
  if ('problem' in header.value) return refuse(`: the header cannot be read: ${header.value.problem}`);
  const columns = namesIn(header.value.cells);
  const seen = new Set<string>();
  const twice = columns.find((column) => seen.size === seen.add(column).size);
  if (twice !== undefined) return refuse(`: the header names the column ${JSON.stringify(twice)} twice`);
  return { columns, records, linesBefore: separator === null ? 0 : 1, bytesRead: () => text.bytesRead };
}

/** A tab file whose header has quotation marks around a name quotes its cells as CSV does. */
function formatOf(beginning: string, delimiter: string): RecordFormat {
  const [firstEnd] = /\r?\n|\r/.exec(beginning) ?? [];
  const [header = ''] = beginning.split(/[\r\n]/, 1);
  return {
    delimiter,
    hasQuotes: delimiter !== '\t' || header.split(delimiter).some((name) => /^".*"$/.test(name)),
    lineEnd: firstEnd === '\r' ? '\r' : '\n',
  };
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

/** The delimiter that gives the most columns, and the comma for one. Delimiters whose columns make a document go first. */
async function delimiterOf(beginning: string, fits: CsvInput['fits']): Promise<string> {
  const candidates = await Promise.all(
    [',', ';', '\t'].map(async (delimiter) => ({
      delimiter,
      columns: await headerOf(beginning, delimiter),
    })),
  );
  const fitting = candidates.filter(({ columns }) => fits(columns));
  const [best] = (fitting.length > 0 ? fitting : candidates).toSorted(
    (one, other) => other.columns.length - one.columns.length,
  );
  return best!.columns.length > 1 ? best!.delimiter : ',';
}

async function headerOf(beginning: string, delimiter: string): Promise<readonly string[]> {
  const records = readRecords(Readable.from([beginning]), formatOf(beginning, delimiter));
  const { value: header } = await records.next();
  await records.return(undefined);
  return header !== undefined && 'cells' in header ? namesIn(header.cells) : [];
}

function namesIn(header: readonly string[]): readonly string[] {
  return header.map((column) => column.trim());
}

function rowOf(columns: readonly string[], record: readonly string[]): FileRow['parsed'] {
  const cells = columns.map((column, place) => [column, record[place]!] as const);
  return { object: Object.fromEntries(cells.filter(([, cell]) => cell !== '')) };
}
