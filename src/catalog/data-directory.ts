/**
 * The data directory: made private (mode 0700), and lockable, so that only one server uses it.
 *
 * The lock is an EXCLUSIVE transaction on a small SQLite database, `server.lock`, that is begun and never
 * ended: Node has no `flock`, SQLite's POSIX locks are released by the kernel whatever kills the process,
 * and there is no stale pid file to guess about. Nothing is ever written to it. Needs a local file
 * system, as WAL does.
 */
import { constants, existsSync } from 'node:fs';
import { access, chmod, mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { isBusy, openLockDatabase } from './sqlite/connection.ts';
import { syncDirectory } from './sync-directory.ts';
import { ServiceError } from '../errors.ts';

export interface DataDirectoryLock {
  /** Its name in the directory. */
  readonly file: string;
  /** Idempotent. */
  release(): void;
}

const lockFile = 'server.lock';
const mode = 0o700;
/** A probe of `isDataDirectoryLocked` is over in microseconds; a server about to end needs longer. */
const lockTimeoutMs = 1000;

/** Creates the directory (and its parents) if it is missing, and closes it to everybody but its owner. */
export async function prepareDataDirectory(directory: string): Promise<void> {
  const created = await mkdir(directory, { recursive: true, mode });
  await assertWritable(directory);
  const { mode: found } = await stat(directory);
  if ((found & 0o777) !== mode) await chmod(directory, mode);
  if (created !== undefined) await syncUpTo(directory, path.dirname(created));
}

/** Held until released or until this process ends, however it ends. */
export function lockDataDirectory(directory: string): DataDirectoryLock {
  const connection = openLockDatabase(path.join(directory, lockFile), lockTimeoutMs);
  try {
    // A journal in memory: the lock can be had on a full disk too.
    connection.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    connection.close();
    if (!isBusy(error)) throw error;
    throw new ServiceError('service_unavailable', `another server uses the data directory ${directory}`, {
      cause: error,
    });
  }
  return {
    file: lockFile,
    release: () => {
      if (connection.open) connection.close();
    },
  };
}

/** Whether a server holds the lock now. */
export function isDataDirectoryLocked(directory: string): boolean {
  const file = path.join(directory, lockFile);
  if (!existsSync(file)) return false;
  const connection = openLockDatabase(file, 0);
  try {
    // A shared lock: probes do not get in each other's way.
    connection.prepare('SELECT count(*) FROM sqlite_schema').get();
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    connection.close();
  }
}

async function assertWritable(directory: string): Promise<void> {
  await access(directory, constants.W_OK).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EROFS') throw error;
    throw new ServiceError(
      'service_unavailable',
      `the data directory ${directory} is on a read-only file system; mount it for writing`,
      { cause: error },
    );
  });
}

/** Makes the names of new directories durable, from the innermost to their first existing parent. */
async function syncUpTo(directory: string, existing: string): Promise<void> {
  for (let at = path.resolve(directory); at !== path.resolve(existing); at = path.dirname(at)) {
    await syncDirectory(path.dirname(at));
  }
}
