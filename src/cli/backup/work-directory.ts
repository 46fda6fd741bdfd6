/** Where a backup or a restore works until what it makes is whole. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { lockDataDirectory, type DataDirectoryLock } from '../../catalog/data-directory.ts';
import { ServiceError } from '../../errors.ts';
import { CommandFailure, type FailureCode } from '../failure.ts';

/**
 * Runs `work` in a directory of its own, which is gone afterwards unless `work` has renamed it. What a process that was
 * killed left there is removed first. A process that still works there keeps others out.
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
