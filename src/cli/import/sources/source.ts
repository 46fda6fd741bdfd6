/**
 * The source of an import: one file, an object of S3, standard input, the corpus of a BEIR directory, the shards of a
 * dataset, or the texts of a folder.
 */
import type { Readable } from 'node:stream';
import { corpusOf, isBeir, isDirectory } from '../../beir/directory.ts';
import { CommandFailure, inputError } from '../../failure.ts';
import type { ParsedLine } from '../../jsonl.ts';
import { assertColumns, isDocument, mayBeTyped, staysString, type FieldChoice } from '../fields.ts';
import { formsOf } from '../exports/exports.ts';
import { ColumnTypes } from './column-types.ts';
import {
  dataFilesIn,
  descriptionsIn,
  hasCard,
  openDataset,
  parquetCode,
  type DatasetChoice,
} from './dataset.ts';
import type { KeepsStrings } from './front-matter.ts';
import { formatOf, openRowFile, openRowStream, type Format, type Reading, type RowFile } from './row-file.ts';
import { openTexts, otherFilesIn, textsIn, type FileCounts } from './text.ts';

export interface SourceChoice extends DatasetChoice {
  /** A path, `s3://bucket/key`, or `-` for standard input. */
  readonly source: string;
  /** `undefined` = by the name of the file. */
  readonly format?: Format | undefined;
  readonly fields: FieldChoice;
}

export interface Row {
  /** Number in the whole source, from 1 on. */
  readonly number: number;
  readonly file: string;
  /** Line of a text file, element of a JSON array, row of a Parquet file; counted from 1. */
  readonly line: number;
  readonly parsed: ParsedLine;
  /** The file has columns: it is CSV or Parquet. */
  readonly hasColumns?: boolean;
  readonly remark?: string | undefined;
  /** The library that may have written it, which is told if no row is a document. */
  readonly hint?: string | undefined;
  /** Bytes of the whole source that were read so far. */
  readonly bytesRead: number;
}

export interface Source {
  /** Name in messages. */
  readonly name: string;
  readonly files: readonly RowFile[];
  /** Number of rows that a dataset states. */
  readonly rowsPromised?: number;
  /** The end of messages about the rows: what else could be read. */
  readonly advice?: string;
  /** Files of the folder that are not read. */
  readonly skipped?: FileCounts;
  /** Types of the columns in files of strings. */
  readonly types: ColumnTypes;
}

/** Reads CSV files to their ends, to find the types of their columns. `signal` ends this, and other long reading. */
export async function openSource(
  choice: SourceChoice,
  stdin: Readable,
  signal: AbortSignal,
): Promise<Source> {
  const types = new ColumnTypes((column) => mayBeTyped(column, choice.fields));
  const opened = await openFiles(choice, stdin, signal);
  const typed = opened.files.find(({ hasTypes }) => hasTypes);
  if (typed !== undefined && choice.fields.strings !== undefined)
    throw new CommandFailure(
      'usage_error',
      `--string-fields is for CSV and the front matter of texts: ${typed.name} itself says the types of its values`,
    );
  for (const file of opened.files) assertColumns(file, choice.fields, opened.advice);
  // Standard input can be read only once.
  if (isRepeatable(opened))
    await types.learnFrom(
      opened.files.filter(({ isText }) => isText),
      signal,
    );
  return { ...opened, types };
}

async function openFiles(
  choice: SourceChoice,
  stdin: Readable,
  signal: AbortSignal,
): Promise<Omit<Source, 'types'>> {
  const { source, fields } = choice;
  // A title that is a number or a boolean is that text.
  const keepsStrings: KeepsStrings = (field) => field === 'title' || staysString(field, fields);
  const fits: Reading['fits'] = (columns) => isDocument(columns, fields);
  const reading: Reading = { format: choice.format, from: fields.from, fits, keepsStrings, signal };
  if (source === '-') {
    const file = await openRowStream(stdin, reading);
    return { name: file.name, files: [file] };
  }
  const isFolder = isDirectory(source) && !isBeir(source);
  const isOfTexts = isFolder && mayBeTexts(choice);
  if (isFolder && !isOfTexts) {
    const { files: paths, subset, split, rowsPromised, advice } = openDataset(source, choice);
    return {
      name: `${source} (subset ${subset}, split ${split})`,
      files: await Promise.all(paths.map((file) => openRowFile(file, reading))),
      skipped: otherFilesIn(source, [...paths, ...descriptionsIn(source)]),
      ...(rowsPromised === undefined ? {} : { rowsPromised }),
      advice,
    };
  }
  if (choice.subset !== undefined || choice.split !== undefined)
    throw new CommandFailure('usage_error', '--subset and --split are for the folder of a dataset');
  if (isOfTexts && fields.from !== undefined)
    throw new CommandFailure('usage_error', `${source} is a folder of texts: ${formsOf(fields.from)}`);
  if (isOfTexts) return { name: source, ...(await openTexts(source, keepsStrings)) };
  const file = isDirectory(source) ? corpusOf(source) : source;
  return { name: file, files: [await openRowFile(file, reading)] };
}

/**
 * A folder with data files is a dataset, unless its texts are asked for. If it has more texts than data files, or these could be
 * settings (`.json`), the user decides.
 */
function mayBeTexts({ source: directory, format, subset, split }: SourceChoice): boolean {
  if (format !== undefined) return format === 'text';
  const data = dataFilesIn(directory);
  if (data.length === 0) return true;
  const texts = textsIn(directory);
  const textsMax = data.every((file) => file.endsWith('.json')) ? 0 : data.length;
  const isAsked = subset !== undefined || split !== undefined;
  if (texts.length <= textsMax || isAsked || hasCard(directory)) return false;
  const readable = data.find((file) => formatOf(file) !== undefined);
  const forData =
    readable === undefined
      ? `the data is read once it is Parquet, which Python writes with ${parquetCode(directory)}`
      : `--format ${formatOf(readable)} the data`;
  throw inputError(
    `${directory} holds texts (${texts.length}), such as ${texts[0]}, and data (${data.length}), such as ${readable ?? data[0]}: --format text imports the texts, and ${forData}`,
  );
}

/** Standard input can be read only once. */
export function isRepeatable({ files }: Pick<Source, 'files'>): boolean {
  return files.every(({ version }) => version !== undefined);
}

/** 0 = unknown. */
export function bytesOf({ files }: Source): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

export async function* rowsOf({ files, types }: Source): AsyncGenerator<Row> {
  let rowsBefore = 0;
  let bytesBefore = 0;
  for (const { name, bytes, version, columns, isText = false, rows: read } of files) {
    const rows = isText && version === undefined ? types.learnHead(read(), name) : read();
    let last = 0;
    for await (const { line, parsed, remark, hint, bytesRead } of rows) {
      last = line;
      yield {
        number: rowsBefore + line,
        file: name,
        line,
        parsed: isText ? types.typed(parsed) : parsed,
        hasColumns: columns !== undefined,
        remark,
        hint,
        bytesRead: bytesBefore + bytesRead,
      };
    }
    rowsBefore += last;
    bytesBefore += bytes;
  }
}
