/**
 * Finds the files of an evaluation in a directory: queries and relevance judgements ("qrels"), in the layout of BEIR
 * or as subsets of a Hugging Face dataset (https://github.com/embeddings-benchmark/mteb writes both).
 */
import { fileIn, isBeir, isDirectory, queriesNames } from '../beir/directory.ts';
import { CommandFailure, inputError } from '../failure.ts';
import { openDataset } from '../import/sources/dataset.ts';
import { openRowFile, type FileRow } from '../import/sources/row-file.ts';

export interface EvalChoice {
  readonly directory: string;
  /** The judgements of this split; `undefined` = test, or else dev. */
  readonly split?: string | undefined;
  /** File of judgements, instead of the ones in the directory. */
  readonly qrels?: string | undefined;
}

export interface EvalFiles {
  readonly queries: readonly string[];
  readonly judgements: readonly string[];
}

const splitsPreferred = ['test', 'dev', 'validation'];
const preferred = {
  subsets: ['qrels', 'default'],
  splits: splitsPreferred,
  advice: 'name the file of judgements with --qrels FILE',
};

/** A `CommandFailure` names what is missing. */
export function evalFilesOf({ directory, split, qrels }: EvalChoice): EvalFiles {
  if (split !== undefined && qrels !== undefined)
    throw new CommandFailure('usage_error', '--split chooses a file of the directory: leave out --qrels');
  if (!isDirectory(directory)) throw inputError(`${directory} is not a directory`);
  const inBeir = isBeir(directory);
  const queries = inBeir
    ? [firstOf(directory, queriesNames)]
    : openDataset(directory, { subset: 'queries', split: 'all', preferred }).files;
  if (qrels !== undefined) return { queries, judgements: [qrels] };
  const judgements = inBeir
    ? [firstOf(directory, judgementsNames(split))]
    : openDataset(directory, { split, preferred }).files;
  return { queries, judgements };
}

function judgementsNames(split: string | undefined): readonly string[] {
  const ofSplit = (name: string): readonly string[] => [`qrels/${name}.tsv`, `qrels/${name}.jsonl`];
  return split === undefined ? ['qrels.tsv', ...splitsPreferred.flatMap(ofSplit)] : ofSplit(split);
}

function firstOf(directory: string, names: readonly string[]): string {
  const found = fileIn(directory, names);
  if (found === undefined) throw inputError(`${directory} holds neither ${names.join(' nor ')}`);
  return found;
}

interface PlacedObject {
  /** File and line, for messages. */
  readonly where: string;
  readonly object: Readonly<Record<string, unknown>>;
}

/** The rows of JSON, Parquet and CSV files. A row that is no object is a `CommandFailure`. */
export async function* objectsIn(file: string): AsyncGenerator<PlacedObject> {
  const { rows } = await openRowFile(file, { format: undefined, fits: () => true });
  for await (const row of rows()) yield { where: `${file}:${row.line}`, object: objectOf(file, row) };
}

function objectOf(file: string, { line, parsed }: FileRow): PlacedObject['object'] {
  if ('problem' in parsed) throw inputError(`${file}:${line}: ${parsed.problem}`);
  return parsed.object;
}
