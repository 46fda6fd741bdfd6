/** The directory where a backup or a restore works until its result is complete. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { lockDataDirectory, type DataDirectoryLock } from '../../catalog/data-directory.ts';
import { ServiceError } from '../../errors.ts';
import { CommandFailure, type FailureCode } from '../failure.ts';

/**
 * Runs `work` in a directory of its own, and removes the directory afterwards, unless `work` renamed it. Files of a process
 * that was killed are removed first. While a process works there, others are refused.
 */
export async function withWorkDirectory<T>(
  directory: string,
  busy: { readonly code: FailureCode; readonly message: string },
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const lock = lockOrRefuse(directory, busy);
  try {
    for (const name of await readdir(directory)) {
      if (name !== lock.file) await rm(path.join(directory, name), { recursive: true });
    }
    return await work();
  } finally {
    await rm(directory, { recursive: true, force: true });
    lock.release();
  }
}

function lockOrRefuse(
  directory: string,
  { code, message }: { readonly code: FailureCode; readonly message: string },
): DataDirectoryLock {
  try {
    return lockDataDirectory(directory);
  } catch (error) {
    throw error instanceof ServiceError ? new CommandFailure(code, message, { cause: error }) : error;
  }
}
