/**
 * `usage.db`, written and read on the calling thread. A commit is one write to the operating system, so it survives the death
 * of the process. It waits for no lock: where another process holds it, the commit fails. It waits for no disk either, because
 * another connection restarts the write-ahead log (`checkpoint-thread.ts`).
 *
 * A damaged ledger can be set aside under another name. Then a new one is begun.
 */
import { closeSync, fdatasync, openSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { UsageEvent } from '../../../contracts/document-commits.ts';
import { ServiceError } from '../../../errors.ts';
import { hasCode } from '../../../system-errors.ts';
import { syncDirectory } from '../../sync-directory.ts';
import {
  damage,
  isDamage,
  isReadOnly,
  isUnavailable,
  openReader,
  openWriter,
  restartLog,
} from '../connection.ts';
import type { Connection } from '../connection.ts';
import { usageColumns, usageValues, type UsagePart } from '../../rows.ts';
import { migrate, usageMigrations } from '../schema.ts';
import { addUsageSql, usageStatements, type RateWindow, type UsageDayPart } from './usage-statements.ts';

export const usageFile = 'usage.db';
/** The time that a start waits for another process that creates or migrates the database. */
const openBusyTimeoutMs = 10_000;
const syncData = promisify(fdatasync);
const setAsidePattern = /^usage\.db\.damaged-[0-9TZ-]+$/;

export class UsageStore {
  readonly #connection: Connection;
  /** The write-ahead log. It stays the same file while the connection is open. */
  readonly #logDescriptor: number;
  readonly #write;
  readonly #add;
  readonly #reads;
  readonly #selectTenants;

  /**
   * Throws damage (`isDamage`), `service_unavailable` for a ledger of a newer program, or the error of the disk. `checked`: the
   * whole ledger is checked for damage, and its log restarted.
   */
  static async open(directory: string, { checked }: { readonly checked: boolean }): Promise<UsageStore> {
    const file = path.join(directory, usageFile);
    let connection: Connection | undefined;
    try {
      connection = await openWriter({
        path: file,
        durability: 'process_death',
        busyTimeoutMs: openBusyTimeoutMs,
      });
      migrate(connection, usageMigrations);
      connection.pragma('busy_timeout = 0');
      if (checked) checkAndRestart(connection);
      return new UsageStore(connection);
    } catch (error) {
      connection?.close();
      if (error instanceof ServiceError || isUnavailable(error) || isDamage(error)) throw error;
      throw damage(`${usageFile}: ${(error as Error).message}`);
    }
  }

  private constructor(connection: Connection) {
    this.#connection = connection;
    this.#add = connection.prepare(addUsageSql);
    this.#reads = usageStatements(connection);
    this.#selectTenants = connection
      .prepare<[], string>('SELECT DISTINCT tenant_id FROM usage_months')
      .pluck();
    const erase = connection.prepare('DELETE FROM usage_months WHERE tenant_id = ?');
    this.#write = connection.transaction((events: Iterable<UsageEvent>, erased: Iterable<string>) => {
      for (const tenantId of erased) erase.run(tenantId);
      for (const event of events) this.add(event);
    });
    this.#logDescriptor = openSync(`${connection.name}-wal`, 'r');
  }

  /** Stores one event. If it throws, nothing is stored. */
  add(event: UsageEvent): void {
    this.#add.run(event.tenantId, ...usageValues(event));
  }

  /** In one transaction: erases the tenants, then stores the events. */
  write(events: Iterable<UsageEvent>, erasedTenantIds: Iterable<string>): void {
    this.#write.immediate(events, erasedTenantIds);
  }

  totals(tenantId: string, month: string): readonly UsagePart[] {
    return this.#reads.totals.all(tenantId, month);
  }

  days(tenantId: string, from: string, to: string): readonly UsageDayPart[] {
    return this.#reads.days.all(tenantId, from, to);
  }

  rateWindows(month: string): readonly RateWindow[] {
    return this.#reads.rateWindows.all(month);
  }

  tenantIds(): readonly string[] {
    return this.#selectTenants.all();
  }

  /**
   * Once it resolves, a power cut takes nothing that was added before the call. SQLite recovers every transaction of the log up
   * to the first incomplete one, and a restart of the log syncs the database first.
   */
  async sync(): Promise<void> {
    await syncData(this.#logDescriptor);
  }

  /** Not while a `sync` is under way. */
  close(): void {
    closeSync(this.#logDescriptor);
    this.#connection.close();
  }
}

/** Renames a ledger that no process has open, so that the next `open` begins a new one. Returns the new name. */
export async function setAsideUsage(directory: string): Promise<string> {
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, '-');
  const name = `${usageFile}.damaged-${stamp}`;
  const at = (file: string): string => path.join(directory, file);
  await rm(at(`${usageFile}-shm`), { force: true });
  // The log is renamed first. If it stayed behind alone, it could be taken for the log of the new ledger.
  await rename(at(`${usageFile}-wal`), at(`${name}-wal`)).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error;
  });
  await rename(at(usageFile), at(name));
  await syncDirectory(directory);
  return name;
}

/** Finds problems of the usage ledger of a data directory, also beside a running server. Changes nothing. */
export async function usageProblems(
  directory: string,
): Promise<readonly { readonly file: string; readonly problem: string }[]> {
  const names = await readdir(directory);
  const setAside = names
    .filter((name) => setAsidePattern.test(name))
    .map((file) => ({
      file,
      problem:
        'a damaged usage ledger that was set aside: the requests in it are not in the usage of their tenants',
    }));
  if (!names.includes(usageFile)) return setAside;
  try {
    const connection = openReader(path.join(directory, usageFile));
    try {
      assertSound(connection);
      connection.prepare(`SELECT ${usageColumns} FROM usage_months`);
    } finally {
      connection.close();
    }
    return setAside;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    return [
      ...setAside,
      { file: usageFile, problem: `the usage ledger is damaged: ${(error as Error).message}` },
    ];
  }
}

function checkAndRestart(connection: Connection): void {
  assertSound(connection);
  try {
    restartLog(connection);
  } catch (error) {
    // The directory can be written, so the header or the mode of the file is wrong. The first event will meet any other
    // error again.
    if (isReadOnly(error)) throw damage(`${usageFile}: ${(error as Error).message}`);
  }
}

function assertSound(connection: Connection): void {
  const [found] = connection.pragma('integrity_check(1)') as { readonly integrity_check: string }[];
  if (found?.integrity_check !== 'ok') throw new Error(found?.integrity_check);
}
