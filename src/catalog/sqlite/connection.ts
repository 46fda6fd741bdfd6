/**
 * The one importer of the SQLite driver: opens connections with the pragmas the catalog relies on and
 * classifies the driver's errors. Everything else under `catalog/sqlite` is handed a `Connection`.
 */
import Database from 'better-sqlite3';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../errors.ts';

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
 * Opens (and creates) a database for writing. Checkpoints are not automatic: they would add their fsync
 * to the latency of a commit; the writer thread runs them between groups.
 */
export async function openWriter(options: WriterOptions): Promise<Connection> {
  const connection = new Database(options.path, { timeout: options.busyTimeoutMs });
  try {
    assertSqliteVersion(connection);
    // Takes effect in a new database only: pages freed by an erased tenant can be given back.
    connection.pragma('auto_vacuum = INCREMENTAL');
    await enterWalMode(connection, options.busyTimeoutMs);
    connection.pragma(`synchronous = ${options.durability === 'power_loss' ? 'FULL' : 'NORMAL'}`);
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
export function openReader(path: string, busyTimeoutMs = 1000): Connection {
  const connection = new Database(path, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs });
  connection.pragma('query_only = ON');
  return connection;
}

/**
 * A connection whose locks last until it is closed or its process dies, in a database of its own; the
 * kernel releases them even after `kill -9`.
 */
export function openLockDatabase(path: string, busyTimeoutMs: number): Connection {
  return new Database(path, { timeout: busyTimeoutMs });
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

/** What a full disk, a failing one or a lock held too long gives: nothing was written, trying again may work. */
const unavailableCodes = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|NOMEM|CANTOPEN|READONLY|PROTOCOL|INTERRUPT)(_|$)/;

/** Maps what the machine does to us to `service_unavailable`; anything else is returned as it is. */
export function toOperatingError(error: unknown): unknown {
  const code = sqliteCode(error);
  if (code === undefined || !unavailableCodes.test(code)) return error;
  return new ServiceError('service_unavailable', `the catalog is not available now (${code})`, {
    retryAfterSeconds: 1,
    cause: error,
  });
}
