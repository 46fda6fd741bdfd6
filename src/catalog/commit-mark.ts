/**
 * `segments/catalog-mark` holds the id of the catalog that the segments belong to, and the number of its commits. Every commit
 * overwrites the mark once it is durable, so the mark is never ahead of its catalog.
 *
 * A catalog that is behind the mark lacks commits that may have been answered: it comes from a backup, or damage cost it the
 * end of its write-ahead log. Segments that it does not name may hold documents, so they must not be deleted.
 *
 * The mark is not synced, so that no commit waits for it. After a power cut it may be half a minute old. A new one may be empty
 * or full of zeros.
 */
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { makeDirectories } from '../process/make-directories.ts';
import { hasCode } from '../system-errors.ts';

export interface CommitMark {
  readonly catalogId: string;
  readonly commits: number;
}

export const commitMarkFile = 'segments/catalog-mark';
const countDigits = 16;

/**
 * `undefined` when there is no mark, or its bytes never reached the disk. A file that is no mark reads as the mark of another
 * catalog.
 */
export function readCommitMark(directory: string): CommitMark | undefined {
  let text;
  try {
    text = readFileSync(path.join(directory, commitMarkFile), 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
  if (/^\0*$/.test(text)) return undefined;
  const [, catalogId = '', commits = ''] = /^([0-9a-f-]{36}) (\d+)\n$/.exec(text) ?? [];
  return { catalogId, commits: Number(commits) };
}

export class CommitMarkWriter {
  readonly #path: string;
  #file: number | undefined;

  constructor(directory: string) {
    this.#path = path.join(directory, commitMarkFile);
  }

  write({ catalogId, commits }: CommitMark): void {
    this.#file ??= openFile(this.#path);
    // All marks have the same length, so that a write replaces the whole of the one before.
    writeSync(this.#file, `${catalogId} ${String(commits).padStart(countDigits, '0')}\n`, 0);
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }
}

function openFile(file: string): number {
  makeDirectories(path.dirname(file), 0o700);
  return openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o600);
}
