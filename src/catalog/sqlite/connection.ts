/**
 * The one importer of the SQLite driver. It opens connections with the pragmas that the catalog relies on, and classifies the
 * errors of the driver.
 *
 * Every page of a database carries a checksum (`native/sqlite/page_checksums.cpp`). A read that needs a damaged page fails. So
 * damage never hides or changes a row, whatever page it hits.
 */
import Database from 'better-sqlite3';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError, assertInvariant } from '../../errors.ts';
import { builtFile } from '../../process/installation.ts';
import { noSpace } from '../../system-errors.ts';
import { syncDirectory } from '../sync-directory.ts';

export type Connection = Database.Database;

export type Durability = 'power_loss' | 'process_death';

export interface WriterOptions {
  readonly path: string;
  /** `power_loss`: every commit ends with an fsync. `process_death`: a commit reaches the operating system only. */
  readonly durability: Durability;
  /** How long a statement waits for the transaction of another process. */
  readonly busyTimeoutMs: number;
  /** A missing database is an error. Otherwise it is created. */
  readonly mustExist?: boolean;
}

/** Opens a database whose pages carry checksums; pages without them cannot be read. */
function openDatabase(file: string, options: Database.Options): Connection {
  // The extension applies to every database that this process opens afterwards. Loading it again takes microseconds.
  const any = new Database(':memory:');
  any.loadExtension(builtFile('page-checksums.so'));
  any.close();
  return new Database(file, options);
}

/**
 * Opens a database for writing. Checkpoints are not automatic, because their fsync would add to the latency of a commit. The
 * writer thread runs them between groups.
 */
export async function openWriter(options: WriterOptions): Promise<Connection> {
  const connection = openDatabase(options.path, {
    timeout: options.busyTimeoutMs,
    fileMustExist: options.mustExist ?? false,
  });
  try {
    // This comes first: setting `auto_vacuum` is a commit, and it must be synced. A commit that was not synced is lost with a
    // later sync that fails.
    connection.pragma(`synchronous = ${options.durability === 'power_loss' ? 'FULL' : 'NORMAL'}`);
    // Pages that an erased tenant frees can be given back. The pragma takes effect in a new database only.
    connection.pragma('auto_vacuum = INCREMENTAL');
    await enterWalMode(connection, options.busyTimeoutMs);
    await syncNames(path.dirname(options.path));
    connection.pragma('wal_autocheckpoint = 0');
    // Deleted metadata of customers is overwritten with zeros, freed pages included.
    connection.pragma('secure_delete = ON');
    connection.pragma('foreign_keys = ON');
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Opens an existing database for reading. A statement sees everything that was committed before it began. */
export function openReader(file: string, busyTimeoutMs = 1000): Connection {
  const connection = openDatabase(file, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs });
  connection.pragma('query_only = ON');
  return connection;
}

/** Opens a database that serves as a lock. The kernel releases its locks when the process dies, even by `kill -9`. */
export function openLockDatabase(file: string, busyTimeoutMs: number): Connection {
  return new Database(file, { timeout: busyTimeoutMs });
}

export interface CheckpointResult {
  readonly busy: number;
  readonly log: number;
  readonly checkpointed: number;
}

export function checkpoint(
  connection: Connection,
  mode: 'NOOP' | 'PASSIVE' | 'RESTART' | 'TRUNCATE',
): CheckpointResult {
  const [row] = connection.pragma(`wal_checkpoint(${mode})`) as CheckpointResult[];
  assertInvariant(row !== undefined, 'a checkpoint returns one row');
  return row;
}

/**
 * Copies the write-ahead log into the database and begins a new log. The first transaction of a log syncs its header. Here that
 * is a transaction without changes, so that no other writer waits for the disk. Returns whether the database holds the whole
 * log; `false` when a reader was in the way.
 */
export function restartLog(connection: Connection): boolean {
  const { busy } = checkpoint(connection, 'RESTART');
  const version = connection.pragma('user_version', { simple: true }) as number;
  connection.pragma(`user_version = ${version}`);
  return busy === 0;
}

/** SQLite syncs the name of a new log too, but ignores a failure. Then a power cut would take the log and its commits. */
async function syncNames(directory: string): Promise<void> {
  try {
    await syncDirectory(directory);
  } catch (error) {
    throw new Database.SqliteError((error as Error).message, 'SQLITE_IOERR_DIR_FSYNC');
  }
}

/** SQLite does not wait for locks when it changes the journal mode. So of two processes that open a new database one tries again. */
async function enterWalMode(connection: Connection, busyTimeoutMs: number): Promise<void> {
  const deadline = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      const mode = connection.pragma('journal_mode = WAL', { simple: true });
      if (mode === 'wal') return;
      throw new Error(`the file system does not support WAL databases (journal mode is ${String(mode)})`);
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      await delay(5);
    }
  }
}

/** The driver's error code (`SQLITE_FULL`, ...), `undefined` for any other error. */
function sqliteCode(error: unknown): string | undefined {
  return error instanceof Database.SqliteError ? error.code : undefined;
}

export function isBusy(error: unknown): boolean {
  return sqliteCode(error)?.startsWith('SQLITE_BUSY') ?? false;
}

/** Codes that mean that the stored bytes are not those that were written. */
const damageCodes = /^SQLITE_(IOERR_DATA|IOERR_CORRUPTFS|CORRUPT|NOTADB)(_|$)/;

export function isDamage(error: unknown): boolean {
  return damageCodes.test(sqliteCode(error) ?? '');
}

/** The error for damage that SQLite itself does not see, such as missing rows. */
export function damage(message: string): Error {
  return new Database.SqliteError(message, 'SQLITE_CORRUPT');
}

/** A transaction was interrupted before its database entered WAL mode, and this connection may not undo it. */
export function needsRollback(error: unknown): boolean {
  return sqliteCode(error) === 'SQLITE_READONLY_ROLLBACK';
}

/** Codes of a full disk, a failing disk, or a lock that is held too long. Nothing was written, and trying again may work. */
const unavailableCodes = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|NOMEM|CANTOPEN|READONLY|PROTOCOL|INTERRUPT)(_|$)/;

/** Whether the machine caused the error. Damage and defects of this program are not meant. */
export function isUnavailable(error: unknown): boolean {
  return unavailableCodes.test(sqliteCode(error) ?? '') && !isDamage(error);
}

/** With a quota, a full disk looks like a failing one. */
const outOfSpaceCodes = /^SQLITE_(FULL|CANTOPEN|IOERR)(_|$)/;

/** Also for an error that `toOperatingError` has converted. */
export function isOutOfSpace(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : error;
  return outOfSpaceCodes.test(sqliteCode(cause) ?? '') && !isDamage(cause);
}

export function isReadOnly(error: unknown): boolean {
  return sqliteCode(error)?.startsWith('SQLITE_READONLY') ?? false;
}

const retryDamagedSeconds = 30;

/** Converts damage and errors of the machine to `service_unavailable`. Returns any other error as it is. */
export function toOperatingError(error: unknown): unknown {
  const code = sqliteCode(error);
  if (isDamage(error)) {
    return new ServiceError('service_unavailable', `the catalog is damaged (${code})`, {
      retryAfterSeconds: retryDamagedSeconds,
      cause: error,
    });
  }
  if (!isUnavailable(error)) return error;
  if (code === 'SQLITE_FULL') return noSpace(error);
  return new ServiceError('service_unavailable', `the catalog is not available now (${code})`, {
    retryAfterSeconds: 1,
    cause: error,
  });
}

type Reads = Readonly<Record<string, (...input: never[]) => unknown>>;

/**
 * Synchronous reads as methods of the contract: `async` functions that reject with operating errors. A read still runs at the
 * moment of the call.
 */
export function operating<Read extends Reads>(reads: Read) {
  const entries = Object.entries(reads).map(([name, read]) => [
    name,
    async (...input: never[]): Promise<unknown> => {
      try {
        return await read(...input);
      } catch (error) {
        throw toOperatingError(error);
      }
    },
  ]);
  return Object.fromEntries(entries) as {
    [Name in keyof Read]: (...input: Parameters<Read[Name]>) => Promise<Awaited<ReturnType<Read[Name]>>>;
  };
}
