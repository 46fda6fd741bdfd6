/**
 * A directory in the layout of BEIR (arXiv 2104.08663): `corpus.jsonl[.gz]`, `queries.jsonl[.gz]` and
 * `qrels.tsv` or `qrels/test.tsv`.
 */
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { inputError } from '../failure.ts';
import { identifierText } from '../json.ts';

export type BeirPart = 'corpus' | 'queries' | 'qrels';

const names: Readonly<Record<BeirPart, readonly string[]>> = {
  corpus: ['corpus.jsonl', 'corpus.jsonl.gz'],
  queries: ['queries.jsonl', 'queries.jsonl.gz'],
  qrels: ['qrels.tsv', 'qrels/test.tsv'],
};

export function isDirectory(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Path of a part. If it is missing, a `CommandFailure` names the files that were tried. */
export function beirFile(directory: string, part: BeirPart): string {
  if (!isDirectory(directory)) throw inputError(`${directory} is not a directory`);
  const found = names[part].map((name) => path.join(directory, name)).find((file) => existsSync(file));
  if (found === undefined) throw inputError(`${directory} holds neither ${names[part].join(' nor ')}`);
  return found;
}

/** Title, a space, text. Without one of them there is no space. */
export function documentText(title: string, text: string): string {
  if (title === '') return text;
  return text === '' ? title : `${title} ${text}`;
}

/** The identifier of a row; `undefined` if it has none. */
export function identifierOf(object: Readonly<Record<string, unknown>>): string | undefined {
  return identifierText(object['doc_id'] ?? object['_id'] ?? object['id']);
}
