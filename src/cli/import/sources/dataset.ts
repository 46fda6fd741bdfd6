/**
 * A folder in the layout of a Hugging Face dataset (https://huggingface.co/docs/hub/datasets-manual-configuration):
 * subsets ("configs"), their splits, and the shards of a split. The front matter of README.md names them, or else the names
 * of folders and files do. The front matter or `dataset_info.json` gives the number of rows of a split.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { issuesInWords } from '../../../input/issue-words.ts';
import { inputError, messageOf } from '../../failure.ts';
import { FrontMatterError, readFrontMatter } from './front-matter.ts';
import { formatOf } from './row-file.ts';

export interface DatasetChoice {
  readonly subset?: string | undefined;
  /** `all` = all splits. */
  readonly split?: string | undefined;
  /** By default those of documents to import. */
  readonly preferred?: Preferred;
}

/** If none is asked for, the first of these that is there. */
interface Preferred {
  readonly subsets: readonly string[];
  readonly splits: readonly string[];
  /** The way out if there are other subsets only. */
  readonly advice: string;
}

const preferredOfDocuments: Preferred = {
  subsets: ['corpus', 'default'],
  splits: [],
  advice: 'choose with --subset NAME',
};

export interface Dataset {
  readonly subset: string;
  readonly split: string;
  /** Paths of the shards, in their order. */
  readonly files: readonly string[];
  /** Number of rows that the dataset states. */
  readonly rowsPromised?: number;
  /** The end of messages about the rows: the subsets, if there are several. */
  readonly advice: string;
}

/** Subset -> split -> files, relative to the folder. */
type Layout = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

const patterns = z.union([z.string().transform((text) => [text]), z.array(z.string())]);
const splitInfo = z.object({ name: z.string(), num_examples: z.number().optional() });
const datasetInfo = z.object({
  config_name: z.string().optional(),
  splits: z
    .union([z.array(splitInfo), z.record(z.string(), splitInfo).transform((splits) => Object.values(splits))])
    .default([]),
});
const frontMatter = z.object({
  configs: z
    .array(
      z.object({
        config_name: z.string().default('default'),
        data_files: z
          .union([
            patterns.transform((paths) => [{ split: 'train', path: paths }]),
            z.array(z.object({ split: z.string().default('train'), path: patterns })),
          ])
          .optional(),
        data_dir: z.string().optional(),
      }),
    )
    .optional(),
  dataset_info: z.union([datasetInfo.transform((info) => [info]), z.array(datasetInfo)]).default([]),
});
type Card = z.output<typeof frontMatter>;

const splitNames =
  /(?:^|[^a-z0-9])(train|training|test|testing|eval|evaluation|validation|valid|val|dev)(?=[^a-z0-9]|$)/i;

/** A `CommandFailure` names the subsets or splits if the user must choose one, and a missing shard. */
export function openDataset(directory: string, choice: DatasetChoice): Dataset {
  const card = readCard(directory);
  const layout = layoutOf(directory, card);
  const preferred = choice.preferred ?? preferredOfDocuments;
  const hasOthers = preferred === preferredOfDocuments && layout.size > 1;
  const advice = hasOthers ? `; --subset NAME chooses among ${[...layout.keys()].join(', ')}` : '';
  const [subset, splits] = chosen(directory, 'subset', layout, {
    asked: choice.subset,
    preferred: preferred.subsets,
    advice: preferred.advice,
  });
  const all = new Map([['all', [...splits.values()].flat()]]);
  const [split, names] =
    choice.split === 'all'
      ? ['all', all.get('all')!]
      : chosen(directory, 'split', splits, {
          asked: choice.split,
          preferred: preferred.splits,
          advice: 'choose with --split NAME, or "all"',
          end: advice,
        });
  const files = names.toSorted(new Intl.Collator('en', { numeric: true }).compare);
  assertComplete(directory, files, advice);
  const promised = card.dataset_info
    .filter(({ config_name: name }) => name === undefined || name === subset)
    .flatMap((info) => info.splits)
    .filter(({ name }) => split === 'all' || name === split);
  const rowsPromised = promised.reduce((sum, { num_examples: rows = Number.NaN }) => sum + rows, 0);
  return {
    subset,
    split,
    files: files.map((file) => path.join(directory, file)),
    ...(promised.length > 0 && Number.isFinite(rowsPromised) ? { rowsPromised } : {}),
    advice,
  };
}

function readCard(directory: string): Card {
  const readme = path.join(directory, 'README.md');
  const info = path.join(directory, 'dataset_info.json');
  const text = existsSync(readme) ? readFileSync(readme, 'utf8') : '';
  let file = readme;
  try {
    const card = frontMatter.parse(readFrontMatter(text).content ?? {});
    if (card.dataset_info.length > 0 || !existsSync(info)) return card;
    file = info;
    return { ...card, dataset_info: [datasetInfo.parse(JSON.parse(readFileSync(info, 'utf8')))] };
  } catch (error) {
    throw inputError(`cannot understand ${file}: ${reasonOf(error)}`, error);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) return issuesInWords(error);
  return error instanceof FrontMatterError ? `${error.message} at line ${error.line}` : messageOf(error);
}

/** Whether the folder says that it is a dataset, and which files it has. */
export function hasCard(directory: string): boolean {
  const { configs, dataset_info: info } = readCard(directory);
  return configs !== undefined || info.length > 0;
}

/** Files that describe the data. */
export function descriptionsIn(directory: string): readonly string[] {
  return ['README.md', 'dataset_info.json', 'dataset_infos.json'].map((name) => path.join(directory, name));
}

/** Relative to the directory, with `/`. */
export function dataFilesIn(directory: string): readonly string[] {
  return globSync('**/*.{parquet,arrow,jsonl,ndjson,json,csv,tsv,jsonl.gz,json.gz,csv.gz,tsv.gz}', {
    cwd: directory,
  })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => !/(^|\/)([._].*|dataset_infos?\.json|dataset_dict\.json|state\.json)$/.test(file));
}

function layoutOf(directory: string, card: Card): Layout {
  const all = dataFilesIn(directory);
  const files = all.filter((file) => !file.endsWith('.arrow'));
  if (files.length === 0) {
    throw inputError(
      all.length > 0
        ? `${directory} holds Arrow files of save_to_disk, which are not read: write Parquet in Python with ${parquetCode(directory)}`
        : `${directory} holds neither corpus.jsonl nor corpus.jsonl.gz, nor Parquet, JSONL or CSV files of a dataset`,
    );
  }
  const configs = card.configs?.filter(
    ({ data_files: found, data_dir: folder }) => found !== undefined || folder !== undefined,
  );
  if (configs === undefined || configs.length === 0) return layoutOfNames(files);
  return new Map(
    configs.map(({ config_name: name, data_files: dataFiles, data_dir: folder = '.' }) => {
      const within = (pattern: string): string => path.posix.join(folder, pattern);
      if (dataFiles === undefined) {
        const inside = files.filter((file) => path.posix.matchesGlob(file, within('**')));
        return [name, splitsOf(inside)];
      }
      const splits = dataFiles.map(({ split, path: paths }): [string, readonly string[]] => [
        split,
        files.filter((file) => paths.some((pattern) => path.posix.matchesGlob(file, within(pattern)))),
      ]);
      return [name, new Map(splits)];
    }),
  );
}

/** A DatasetDict has no method that writes Parquet. Each of its splits has. */
export function parquetCode(directory: string): string {
  const loaded = `load_from_disk(${JSON.stringify(directory)})`;
  return existsSync(path.join(directory, 'dataset_dict.json'))
    ? `for split, rows in ${loaded}.items(): rows.to_parquet(f"{split}.parquet")`
    : `${loaded}.to_parquet("train.parquet")`;
}

/** For a dataset without a card. A folder is a subset, unless it is a split or `data`. */
function layoutOfNames(files: readonly string[]): Layout {
  const subsets = Map.groupBy(files, (file) => {
    const [folder = ''] = file.includes('/') ? file.split('/') : [];
    return folder === '' || folder === 'data' || splitNames.test(folder) ? 'default' : folder;
  });
  return new Map([...subsets].map(([name, found]) => [name, splitsOf(found)]));
}

/** The split of a file is a word in its path, or the text before `-00000-of-00005`. */
function splitsOf(files: readonly string[]): ReadonlyMap<string, readonly string[]> {
  return Map.groupBy(files, (file) => {
    const [, word] = splitNames.exec(file) ?? [];
    const [, shard] = /([^/]+?)-\d+-of-\d+/.exec(file) ?? [];
    return word?.toLowerCase() ?? shard ?? 'train';
  });
}

interface Choosing {
  readonly asked: string | undefined;
  readonly preferred: readonly string[];
  /** The way out if none of those that there are is meant. */
  readonly advice: string;
  /** The end of each message. */
  readonly end?: string;
}

function chosen<T>(
  directory: string,
  what: 'subset' | 'split',
  found: ReadonlyMap<string, T>,
  { asked, preferred, advice, end = '' }: Choosing,
): [string, T] {
  const names = [...found.keys()];
  const list = names.join(', ');
  const name = asked ?? (names.length === 1 ? names[0] : preferred.find((item) => found.has(item)));
  if (name === undefined) throw inputError(`${directory} has the ${what}s ${list}: ${advice}${end}`);
  const value = found.get(name);
  if (value === undefined) throw inputError(`${directory} has no ${what} ${name}, but ${list}${end}`);
  return [name, value];
}

/** The name of each shard gives their number. */
function assertComplete(directory: string, files: readonly string[], advice: string): void {
  if (files.length === 0)
    throw inputError(`${directory}: the files that README.md names are missing${advice}`);
  const kinds = new Set(files.map(formatOf));
  if (kinds.size > 1)
    throw inputError(
      `${directory} holds ${[...kinds].join(' and ')} files: import one of them by its path${advice}`,
    );
  const shards = files.flatMap((file) => {
    const match = /^(.*-)(\d+)-of-(\d+)/.exec(file);
    return match === null ? [] : [{ series: match[1]!, place: Number(match[2]), count: Number(match[3]) }];
  });
  for (const [series, members] of Map.groupBy(shards, ({ series: name }) => name)) {
    const there = new Set(members.map(({ place }) => place));
    const count = members[0]!.count;
    const missing = Array.from({ length: count }, (_, place) => place).find((place) => !there.has(place));
    if (missing === undefined) continue;
    throw inputError(
      `${path.join(directory, series)}: shard ${missing} of ${count} is missing, the download is not complete`,
    );
  }
}
