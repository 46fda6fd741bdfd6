/** What is imported: one file, standard input, the corpus of a BEIR directory, or the shards of a dataset. */
import type { Readable } from 'node:stream';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { beirFile, isDirectory } from '../../beir/directory.ts';
import { CommandFailure } from '../../failure.ts';
import type { ParsedLine } from '../../jsonl.ts';
import { openDataset, type DatasetChoice } from './dataset.ts';
import { openRowFile, openRowStream, type Format, type RowFile } from './row-file.ts';

export interface SourceChoice extends DatasetChoice {
  /** A path, or `-` for standard input. */
  readonly source: string;
  /** Absent: what the file's name says. */
  readonly format?: Format | undefined;
}

export interface Row {
  /** Counted over the whole source from 1. */
  readonly number: number;
  readonly file: string;
  /** Line of a text file, row of a Parquet file; counted from 1. */
  readonly line: number;
  readonly parsed: ParsedLine;
  /** Counts bytes of the whole source. */
  readonly bytesRead: number;
}

export interface Source {
  /** As messages call it. */
  readonly name: string;
  readonly files: readonly RowFile[];
  /** Paths; none where it is standard input, which cannot be read again. */
  readonly paths: readonly string[];
  /** 0 = unknown. */
  readonly bytes: number;
  /** Rows that a dataset says it has. */
  readonly rowsPromised?: number;
}

export async function openSource(choice: SourceChoice, stdin: Readable): Promise<Source> {
  const { source, format } = choice;
  if (source === '-') {
    const file = await openRowStream(stdin, format);
    return { name: file.name, files: [file], paths: [], bytes: 0 };
  }
  if (isDirectory(source) && !isBeir(source)) {
    const { files: paths, subset, split, rowsPromised } = openDataset(source, choice);
    const files = await Promise.all(paths.map((file) => openRowFile(file, format)));
    return {
      name: `${source} (subset ${subset}, split ${split})`,
      files,
      paths,
      bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      ...(rowsPromised === undefined ? {} : { rowsPromised }),
    };
  }
  if (choice.subset !== undefined || choice.split !== undefined) {
    throw new CommandFailure('usage_error', '--subset and --split are for the folder of a dataset');
  }
  const file = isDirectory(source) ? beirFile(source, 'corpus') : source;
  const opened = await openRowFile(file, format);
  return { name: file, files: [opened], paths: [file], bytes: opened.bytes };
}

/** A dataset may have a subset of that name; a BEIR directory has the files. */
function isBeir(directory: string): boolean {
  return ['corpus.jsonl', 'corpus.jsonl.gz', 'queries.jsonl', 'queries.jsonl.gz'].some((name) =>
    existsSync(path.join(directory, name)),
  );
}

export async function* rowsOf({ files }: Source): AsyncGenerator<Row> {
  let rowsBefore = 0;
  let bytesBefore = 0;
  for (const { name, bytes, rows } of files) {
    let last = 0;
    for await (const { line, parsed, bytesRead } of rows()) {
      last = line;
      yield { number: rowsBefore + line, file: name, line, parsed, bytesRead: bytesBefore + bytesRead };
    }
    rowsBefore += last;
    bytesBefore += bytes;
  }
}
