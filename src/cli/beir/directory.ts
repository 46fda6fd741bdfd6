/**
 * A directory in the layout of BEIR (arXiv 2104.08663): `corpus.jsonl[.gz]`, `queries.jsonl[.gz]` and
 * `qrels.tsv` or `qrels/test.tsv`.
 */
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { CommandFailure } from '../failure.ts';
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

/** Path of a part; a `CommandFailure` names what was looked for. */
export function beirFile(directory: string, part: BeirPart): string {
  if (!isDirectory(directory)) throw new CommandFailure('input_error', `${directory} is not a directory`);
  const found = names[part].map((name) => path.join(directory, name)).find((file) => existsSync(file));
  if (found === undefined) {
    throw new CommandFailure('input_error', `${directory} holds neither ${names[part].join(' nor ')}`);
  }
  return found;
}

/** Document text: title, a space, text; a missing part brings no space. */
export function documentText(title: string, text: string): string {
  if (title === '') return text;
  return text === '' ? title : `${title} ${text}`;
}

/** The identifier of a row, absent where there is none. */
export function identifierOf(object: Readonly<Record<string, unknown>>): string | undefined {
  return identifierText(object['doc_id'] ?? object['_id'] ?? object['id']);
}
