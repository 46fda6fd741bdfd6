/** One file of documents in any format: its properties, and its rows. */
import path from 'node:path';
import { Readable } from 'node:stream';
import { readBlocks, type Block } from '../../blocks.ts';
import { CommandFailure, inputError } from '../../failure.ts';
import { beginningOf, headOf, readElements } from '../../json-members.ts';
import { parseLine, readLines, type ParsedLine } from '../../jsonl.ts';
import { formsOf, libraries, recognised, wholeFormOf } from '../exports/exports.ts';
import type { ExportName } from '../exports/names.ts';
import { openCsv } from './csv.ts';
import { openInput, sizeOf, streamOf, type InputFile } from './input-file.ts';
import type { KeepsStrings } from './front-matter.ts';
import { isTextName, textFile } from './text.ts';

export interface FileRow {
  /** Line of a text file, element of a JSON array, row of a Parquet file; counted from 1. */
  readonly line: number;
  readonly parsed: ParsedLine;
  /** Something that the end of the import tells. "3 rows" go before it. */
  readonly remark?: string | undefined;
  /** The library that may have written it, which is told if no row is a document. */
  readonly hint?: string | undefined;
  /** Bytes of the file that were read so far. */
  readonly bytesRead: number;
}

export interface Place {
  readonly file: string;
  readonly line: number;
}

export interface RowFile {
  /** Name in messages. */
  readonly name: string;
  /** 0 = unknown. */
  readonly bytes: number;
  /** Differs once the content has changed; `undefined` = standard input, which can be read only once. */
  readonly version?: string | undefined;
  /** `undefined` = known at the end. */
  readonly rowCount?: number;
  /** Names of the columns, if the format has columns. */
  readonly columns?: readonly string[];
  /** Columns of bytes that no type says to be text. */
  readonly bytesColumns?: readonly string[];
  /** The format has strings only. */
  readonly isText?: boolean;
  /** Its values have types, which nothing else can choose. */
  readonly hasTypes?: boolean;
  /** Reads from the beginning. */
  readonly rows: () => AsyncGenerator<FileRow>;
}

export type Format = 'jsonl' | 'csv' | 'parquet' | 'text';

export interface Reading {
  /** `undefined` = by the name of the file. */
  readonly format: Format | undefined;
  /** The library that wrote it. */
  readonly from?: ExportName | undefined;
  /** Whether these columns make a document. */
  readonly fits: (columns: readonly string[]) => boolean;
  readonly keepsStrings?: KeepsStrings;
  /** Ends the reading of a file that is one JSON object, also before its first row. */
  readonly signal?: AbortSignal;
}

/** A `CommandFailure` says why the file cannot be read. */
export async function openRowFile(
  file: string,
  { format: asked, from, fits, keepsStrings, signal }: Reading,
): Promise<RowFile> {
  const input = await openInput(file);
  const beginning = (await input.slice(0, Math.min(64, input.bytes))).toString('latin1');
  if (beginning.startsWith('version https://git-lfs'))
    throw inputError(`${file} is a pointer of Git LFS, not the file itself: fetch it with "git lfs pull"`);
  const isParquet = beginning.startsWith('PAR1');
  const format = asked ?? formatOf(file) ?? (isParquet ? 'parquet' : 'jsonl');
  if (isParquet && format !== 'parquet')
    throw inputError(`${file} is a Parquet file, not ${format}: --format parquet`);
  refuseFormat(file, format, from);
  if (format === 'parquet') {
    const { openParquet } = await import('./parquet.ts');
    return { ...(await openParquet(input)), hasTypes: true };
  }
  if (format === 'text') return textFile(input, path.basename(file), keepsStrings);
  return format === 'csv'
    ? openCsv({ input, name: file, delimiter: delimiterBy(file), fits })
    : jsonFile(input, { name: file, from, signal });
}

export async function openRowStream(
  stream: Readable,
  { format, from, fits, signal }: Reading,
): Promise<RowFile> {
  const name = 'standard input';
  refuseFormat(name, format, from);
  if (format === 'parquet' || format === 'text') {
    const reason = format === 'text' ? 'the id of a text is its path' : 'a Parquet file is read from its end';
    throw new CommandFailure('usage_error', `${reason}: give its path, not standard input`);
  }
  return format === 'csv' ? openCsv({ input: stream, name, fits }) : jsonFile(stream, { name, from, signal });
}

/** The format that the ending of the name stands for. */
export function formatOf(file: string): Format | undefined {
  const ending = endingOf(file);
  if (/^\.(jsonl|ndjson|json)$/.test(ending)) return 'jsonl';
  if (/^\.(csv|tsv)$/.test(ending)) return 'csv';
  if (isTextName(ending)) return 'text';
  return ending === '.parquet' ? 'parquet' : undefined;
}

function endingOf(file: string): string {
  return path.extname(file.toLowerCase().replace(/\.gz$/, ''));
}

/** In a `.tsv` file, only tabs separate fields. */
function delimiterBy(file: string): string | undefined {
  return endingOf(file) === '.tsv' ? '\t' : undefined;
}

/** Most libraries write JSON alone. */
function refuseFormat(name: string, format: Format | undefined, from: ExportName | undefined): void {
  if (from === undefined || format === undefined || format === 'jsonl') return;
  if (format === 'text' || libraries[from].idColumns === undefined)
    throw inputError(`${name} is read as ${format}: ${formsOf(from)}`);
}

interface JsonFile {
  readonly name: string;
  readonly from: ExportName | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Each line is a row. In a file that is one array, each element is a row. In one object, the library says where rows are. */
function jsonFile(input: InputFile | Readable, { name, from, signal }: JsonFile): RowFile {
  return {
    name,
    ...sizeOf(input),
    hasTypes: true,
    async *rows() {
      const { text, blocks } = await headOf(readBlocks(streamOf(input), name));
      const beginning = beginningOf(text);
      const hint = recognised(beginning?.value, from);
      const form = from && wholeFormOf(libraries[from], beginning?.value);
      if (form !== undefined) {
        yield* form.read(openerOf(input, { name, blocks, signal }), name);
        return;
      }
      const isArray = text.startsWith('[');
      const lines = isArray ? readElements(blocks, name) : readLines(name, { blocks });
      for await (const line of lines) {
        if (!isArray && beginning !== undefined && beginning.lines > 1)
          throw inputError(`${name} ${linesProblem(from, hint)}`);
        yield { line: line.number, parsed: parseLine(line), hint, bytesRead: line.fileBytesRead };
      }
    },
  };
}

/** The first reading is the one that has begun. */
function openerOf(
  input: InputFile | Readable,
  { name, blocks, signal }: Omit<JsonFile, 'from'> & { readonly blocks: AsyncGenerator<Block> },
): () => AsyncGenerator<Block> {
  const begun = [blocks];
  const again = (): AsyncGenerator<Block> => {
    if (input instanceof Readable)
      throw new CommandFailure(
        'usage_error',
        `such a file is read several times: give its path, not ${name}`,
      );
    return readBlocks(input.stream(), name);
  };
  return async function* () {
    for await (const block of begun.pop() ?? again()) {
      signal?.throwIfAborted();
      yield block;
    }
  };
}

/** A file that begins with an object of several lines. */
function linesProblem(from: ExportName | undefined, hint: string | undefined): string {
  const problem =
    'begins with one JSON object in several lines, where each line or element of an array should be one';
  return [
    problem,
    ...(from === undefined ? [] : [formsOf(from)]),
    ...(hint === undefined ? [] : [hint]),
  ].join('; ');
}
