/**
 * The data directory. It is private (mode 0700) where this user owns it, and a lock ensures that only one server uses it.
 *
 * The lock is an EXCLUSIVE transaction on the SQLite database `server.lock` that never ends. Node has no `flock`. The kernel
 * releases SQLite's POSIX locks whatever kills the process, so no stale lock is left. Nothing is ever written to the database.
 * It needs a local file system, as WAL does.
 */
import { constants, existsSync } from 'node:fs';
import { access, chmod, stat } from 'node:fs/promises';
import path from 'node:path';
import { makeDirectories } from '../process/make-directories.ts';
import { isBusy, openLockDatabase } from './sqlite/connection.ts';
import { syncDirectory } from './sync-directory.ts';
import { ServiceError } from '../errors.ts';
import { hasCode } from '../system-errors.ts';

export interface DataDirectoryLock {
  /** Its name in the directory. */
  readonly file: string;
  /** Idempotent. */
  release(): void;
}

const lockFile = 'server.lock';
const mode = 0o700;
/** Waits for a server that is about to end. A probe by `isDataDirectoryLocked` takes only microseconds. */
const lockTimeoutMs = 1000;

/**
 * Creates the directory and its parents if they are missing, and sets its mode to 0700. A directory of another user keeps its
 * mode if none but its owner and its group may write to it. From then on this process makes files for its own user alone.
 */
export async function prepareDataDirectory(directory: string): Promise<void> {
  const created = create(directory);
  await assertWritable(directory);
  await closeToOthers(directory);
  if (created !== undefined) await syncUpTo(directory, path.dirname(created));
}

/** Held until released or until this process ends, however it ends. */
export function lockDataDirectory(directory: string): DataDirectoryLock {
  const connection = openLockDatabase(path.join(directory, lockFile), lockTimeoutMs);
  try {
    // With the journal in memory the lock works on a full disk too.
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
    // A read takes a shared lock, so probes do not disturb each other.
    connection.prepare('SELECT count(*) FROM sqlite_schema').get();
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    connection.close();
  }
}

function create(directory: string): string | undefined {
  try {
    return makeDirectories(directory, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ServiceError(
      'service_unavailable',
      `the data directory ${directory} cannot be made (${code}); MAXSIMD_DATA_DIR names another`,
      { cause: error },
    );
  }
}

/** Looks at the directory, and at a file that every server opens, for a user that has changed. */
async function assertWritable(directory: string): Promise<void> {
  const { R_OK, W_OK, X_OK } = constants;
  try {
    await access(directory, R_OK | W_OK | X_OK);
    await access(path.join(directory, lockFile), R_OK | W_OK);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    if (hasCode(error, 'EACCES')) throw await notUsable(directory, error);
    if (!hasCode(error, 'EROFS')) throw error;
    throw new ServiceError(
      'service_unavailable',
      `the data directory ${directory} is on a read-only file system; mount it for writing`,
      { cause: error },
    );
  }
}

async function closeToOthers(directory: string): Promise<void> {
  const { mode: found } = await stat(directory);
  if ((found & 0o777) === mode) return;
  try {
    await chmod(directory, mode);
  } catch (error) {
    if (!hasCode(error, 'EPERM')) throw error;
    if ((found & constants.S_IWOTH) !== 0) throw await notUsable(directory, error);
    process.umask(0o077);
  }
}

/** Says what this user needs to use what the error names, while others still cannot. */
async function notUsable(directory: string, error: unknown): Promise<ServiceError> {
  const { path: name = directory } = error as NodeJS.ErrnoException;
  const { uid, gid, mode: found } = await stat(name);
  const user = process.geteuid?.();
  const isMember = [process.getegid?.(), ...(process.getgroups?.() ?? [])].includes(gid);
  const forGroup = name === directory && isMember ? `, or chmod 770 ${directory}` : '';
  const remedy = uid === user ? `chmod -R u+rwX ${directory}` : `chown -R ${user} ${directory}${forGroup}`;
  const rights = (found & 0o7777).toString(8);
  return new ServiceError(
    'service_unavailable',
    `${name} belongs to user ${uid} and group ${gid} with mode ${rights}, and this process is user ${user}: ` +
      `${remedy}; MAXSIMD_DATA_DIR names another`,
    { cause: error },
  );
}

/** Syncs the names of new directories, from the innermost up to the first parent that existed before. */
async function syncUpTo(directory: string, existing: string): Promise<void> {
  for (let at = path.resolve(directory); at !== path.resolve(existing); at = path.dirname(at)) {
    await syncDirectory(path.dirname(at));
  }
}
