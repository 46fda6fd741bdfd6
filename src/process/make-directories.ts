/**
 * Makes a directory and those above it that are missing. Node's `recursive` is not used for a path that a user names. Where the
 * system answers ENOENT although the folder above is there, as in /proc, Node tries again for ever, and on a thread that
 * no signal ends.
 */
import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { hasCode } from '../system-errors.ts';

/** Returns the first directory that was made; `undefined` = all were there. Throws the error of the system. */
export function makeDirectories(directory: string, mode = 0o777): string | undefined {
  if (isDirectory(directory)) return undefined;
  const above = path.dirname(path.resolve(directory));
  const first = isDirectory(above) ? undefined : makeDirectories(above, mode);
  try {
    mkdirSync(directory, { mode });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!hasCode(error, 'EEXIST') || !isDirectory(directory)) throw error;
    return first;
  }
  return first ?? directory;
}

function isDirectory(name: string): boolean {
  return statSync(name, { throwIfNoEntry: false })?.isDirectory() === true;
}
