/**
 * `segments/catalog-mark`: the id of the catalog that the segments belong to, and how often it had been committed
 * to when the mark was written. Every commit writes it anew, in place, once it is durable: the mark is never ahead
 * of its catalog. A catalog that is behind the mark lacks commits that may have been answered, because it comes
 * from a backup, or because damage cost it the end of its write-ahead log. What it does not name may be
 * documents then, and nothing may be removed for it.
 *
 * It is not synced, so that commits need not wait for it: after a power cut it may be half a minute old, and a new one
 * may be a file without bytes, or of zeros.
 */
import { closeSync, constants, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import path from 'node:path';

export interface CommitMark {
  readonly catalogId: string;
  readonly commits: number;
}

export const commitMarkFile = 'segments/catalog-mark';
const countDigits = 16;

/** `undefined` when there is none, or its first bytes never reached the disk. Anything else that is no mark reads as one of no catalog. */
export function readCommitMark(directory: string): CommitMark | undefined {
  let text;
  try {
    text = readFileSync(path.join(directory, commitMarkFile), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
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
    // Always as long, so that it is replaced whole.
    writeSync(this.#file, `${catalogId} ${String(commits).padStart(countDigits, '0')}\n`, 0);
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }
}

function openFile(file: string): number {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  return openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o600);
}
