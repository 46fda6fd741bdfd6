/**
 * A directory in the layout of BEIR (arXiv 2104.08663): `corpus.jsonl[.gz]`, `queries.jsonl[.gz]`, and judgements
 * (`src/cli/evaluation/eval-files.ts`).
 */
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { inputError } from '../failure.ts';

const corpusNames = ['corpus.jsonl', 'corpus.jsonl.gz'];
export const queriesNames: readonly string[] = ['queries.jsonl', 'queries.jsonl.gz'];

export function isDirectory(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** A dataset may have a subset named corpus. A BEIR directory has these files. */
export function isBeir(directory: string): boolean {
  return fileIn(directory, [...corpusNames, ...queriesNames]) !== undefined;
}

/** Path of the corpus. If it is missing, a `CommandFailure` names the files that were tried. */
export function corpusOf(directory: string): string {
  const found = fileIn(directory, corpusNames);
  if (found === undefined) throw inputError(`${directory} holds neither ${corpusNames.join(' nor ')}`);
  return found;
}

/** Path of the first of these files that is there. */
export function fileIn(directory: string, names: readonly string[]): string | undefined {
  return names.map((name) => path.join(directory, name)).find((file) => existsSync(file));
}

/** Title, a space, text. Without one of them there is no space. */
export function documentText(title: string, text: string): string {
  if (title === '') return text;
  return text === '' ? title : `${title} ${text}`;
}
