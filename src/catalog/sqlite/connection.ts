/**
 * The one importer of the SQLite driver: opens connections with the pragmas the catalog relies on and
 * classifies the driver's errors. Everything else under `catalog/sqlite` is handed a `Connection`.
 *
 * Every page of a database carries a checksum (`native/sqlite/page_checksums.cpp`). A page that is not what
 * was written fails the read that needs it: no row is hidden or changed by damage, whether it hits a row, an
 * index or the way to them.
 */
import Database from 'better-sqlite3';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError, assertInvariant } from '../../errors.ts';
import { builtFile } from '../../installation.ts';
import { syncDirectory } from '../sync-directory.ts';

export type Connection = Database.Database;

/**
 * Before 3.51.3 a race between a checkpoint and a writer could corrupt a WAL database
 * (sqlite.org/wal.html, "the WAL-reset bug").
 */
const versionMinimum = [3, 51, 3] as const;

export type Durability = 'power_loss' | 'process_death';

export interface WriterOptions {
  readonly path: string;
  /** `power_loss`: an fsync a commit. `process_death`: commits reach the operating system only. */
  readonly durability: Durability;
  /** How long a statement waits for another process's transaction. */
  readonly busyTimeoutMs: number;
  /** A database that is missing is an error; otherwise it is made. */
  readonly mustExist?: boolean;
}

/** Opens a database whose pages carry checksums; pages without them cannot be read. */
function openDatabase(file: string, options: Database.Options): Connection {
  // Holds for every database that this process opens afterwards; again it costs microseconds.
  const any = new Database(':memory:');
  any.loadExtension(builtFile('page-checksums.so'));
  any.close();
  return new Database(file, options);
}

function assertSqliteVersion(connection: Connection): void {
  const text = connection.prepare<[], string>('SELECT sqlite_version()').pluck().get() ?? '0.0.0';
  const version = text.split('.').map(Number);
  for (const [place, minimum] of versionMinimum.entries()) {
    const part = version[place] ?? 0;
    if (part > minimum) return;
    if (part < minimum) {
      throw new Error(`SQLite ${text} is too old: the catalog needs ${versionMinimum.join('.')} or newer`);
    }
  }
}

/**
 * Opens a database for writing. Checkpoints are not automatic: they would add their fsync
 * to the latency of a commit; the writer thread runs them between groups.
 */
export async function openWriter(options: WriterOptions): Promise<Connection> {
  const connection = openDatabase(options.path, {
    timeout: options.busyTimeoutMs,
    fileMustExist: options.mustExist ?? false,
  });
  try {
    assertSqliteVersion(connection);
    // First: to set `auto_vacuum` is a commit, and one that was not synced is lost with a later sync that fails.
    connection.pragma(`synchronous = ${options.durability === 'power_loss' ? 'FULL' : 'NORMAL'}`);
    // Takes effect in a new database only: pages freed by an erased tenant can be given back.
    connection.pragma('auto_vacuum = INCREMENTAL');
    await enterWalMode(connection, options.busyTimeoutMs);
    await syncNames(path.dirname(options.path));
    connection.pragma('wal_autocheckpoint = 0');
    // Deleted customer metadata is overwritten with zeros, freed pages included.
    connection.pragma('secure_delete = ON');
    connection.pragma('foreign_keys = ON');
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Opens an existing database for reading; a statement sees everything committed before it began. */
export function openReader(file: string, busyTimeoutMs = 1000): Connection {
  const connection = openDatabase(file, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs });
  connection.pragma('query_only = ON');
  return connection;
}

/**
 * A connection whose locks last until it is closed or its process dies, in a database of its own; the
 * kernel releases them even after `kill -9`.
 */
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
 * Copies the write-ahead log into the database and begins it anew. The first transaction of a log syncs its
 * header: here it is one that changes nothing, so that no other writer has to wait for the disk.
 * Returns whether the database holds all of the log: `false` when a reader was in the way.
 */
export function restartLog(connection: Connection): boolean {
  const { busy } = checkpoint(connection, 'RESTART');
  const version = connection.pragma('user_version', { simple: true }) as number;
  connection.pragma(`user_version = ${version}`);
  return busy === 0;
}

/** SQLite syncs the name of a new log too, but goes on where that fails: a power cut then takes the log and its commits. */
async function syncNames(directory: string): Promise<void> {
  try {
    await syncDirectory(directory);
  } catch (error) {
    throw new Database.SqliteError((error as Error).message, 'SQLITE_IOERR_DIR_FSYNC');
  }
}

/** SQLite does not call the busy handler for the change of journal mode, so two first openers retry here. */
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

/** Stored bytes are not what was written. */
const damageCodes = /^SQLITE_(IOERR_DATA|IOERR_CORRUPTFS|CORRUPT|NOTADB)(_|$)/;

export function isDamage(error: unknown): boolean {
  return damageCodes.test(sqliteCode(error) ?? '');
}

/** As SQLite's own, for damage that shows between rows. */
export function damage(message: string): Error {
  return new Database.SqliteError(message, 'SQLITE_CORRUPT');
}

/** A transaction was cut off before its database entered WAL mode, and this connection may not undo it. */
export function needsRollback(error: unknown): boolean {
  return sqliteCode(error) === 'SQLITE_READONLY_ROLLBACK';
}

/** What a full disk, a failing one or a lock held too long gives: nothing was written, trying again may work. */
const unavailableCodes = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|NOMEM|CANTOPEN|READONLY|PROTOCOL|INTERRUPT)(_|$)/;

/** As opposed to damage, and to defects of ours. */
export function isUnavailable(error: unknown): boolean {
  return unavailableCodes.test(sqliteCode(error) ?? '') && !isDamage(error);
}

/** Also of what `toOperatingError` made of it. With a quota it looks like a failing disk. */
const outOfSpaceCodes = /^SQLITE_(FULL|CANTOPEN|IOERR)(_|$)/;

export function isOutOfSpace(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : error;
  return outOfSpaceCodes.test(sqliteCode(cause) ?? '') && !isDamage(cause);
}

export function isReadOnly(error: unknown): boolean {
  return sqliteCode(error)?.startsWith('SQLITE_READONLY') ?? false;
}

const retryDamagedSeconds = 30;

/** Maps what the machine does to us to `service_unavailable`; anything else is returned as it is. */
export function toOperatingError(error: unknown): unknown {
  const code = sqliteCode(error);
  if (isDamage(error)) {
    return new ServiceError('service_unavailable', `the catalog is damaged (${code})`, {
      retryAfterSeconds: retryDamagedSeconds,
      cause: error,
    });
  }
  if (!isUnavailable(error)) return error;
  return new ServiceError('service_unavailable', `the catalog is not available now (${code})`, {
    retryAfterSeconds: 1,
    cause: error,
  });
}

/** A read as the contract has it: an `async` function, whose failures are rejections with operating errors. */
export function operating<Parameters extends readonly unknown[], Result>(
  read: (...parameters: Parameters) => Result | Promise<Result>,
): (...parameters: Parameters) => Promise<Result> {
  // What is synchronous runs at the call.
  return async (...parameters) => {
    try {
      return await read(...parameters);
    } catch (error) {
      throw toOperatingError(error);
    }
  };
}
