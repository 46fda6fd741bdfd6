/**
 * `usage.db`, written and read on the calling thread: a commit is one write to the operating system, which
 * survives the death of the process. It waits for no lock (an error says that another process holds it) and,
 * as long as another connection restarts the write-ahead log (`checkpoint-thread.ts`), for no disk.
 *
 * A ledger that is damaged can be set aside under another name, so that a new one is begun in its place.
 */
import { closeSync, fdatasync, openSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { UsageEvent } from '../../../document-commits.ts';
import { ServiceError } from '../../../errors.ts';
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
import {
  addUsageSql,
  selectRateWindowsSql,
  selectUsageDaysSql,
  selectUsageSql,
  usageParameters,
} from '../rows.ts';
import type { RateWindowColumns, UsageColumns, UsageDayColumns } from '../rows.ts';
import { migrate, usageMigrations } from '../schema.ts';

export const usageFile = 'usage.db';
/** Two processes that start at once make and migrate the database one after the other. */
const openBusyTimeoutMs = 10_000;
const syncData = promisify(fdatasync);
const setAsidePattern = /^usage\.db\.damaged-[0-9TZ-]+$/;

export class UsageStore {
  readonly #connection: Connection;
  /** The descriptor of the write-ahead log, which stays one file for as long as the connection is open. */
  readonly #logDescriptor: number;
  readonly #write;
  readonly #add;
  readonly #select;
  readonly #selectDays;
  readonly #selectTenants;
  readonly #selectWindows;

  /**
   * Throws damage (`isDamage`), `service_unavailable` for a ledger of a newer program, or what the disk has to say.
   * `checked`: damage is found now, and the log is left so that the first event need not restart it.
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
    this.#select = connection.prepare<[string, string], UsageColumns>(selectUsageSql).safeIntegers();
    this.#selectDays = connection
      .prepare<[string, string, string], UsageDayColumns>(selectUsageDaysSql)
      .safeIntegers();
    this.#selectTenants = connection
      .prepare<[], string>('SELECT DISTINCT tenant_id FROM usage_months')
      .pluck();
    this.#selectWindows = connection.prepare<[string], RateWindowColumns>(selectRateWindowsSql);
    const erase = connection.prepare('DELETE FROM usage_months WHERE tenant_id = ?');
    this.#write = connection.transaction((events: Iterable<UsageEvent>, erased: Iterable<string>) => {
      for (const tenantId of erased) erase.run(tenantId);
      for (const event of events) this.add(event);
    });
    this.#logDescriptor = openSync(`${connection.name}-wal`, 'r');
  }

  /** One event, or what is thrown: then nothing of it is stored. */
  add(event: UsageEvent): void {
    this.#add.run(...usageParameters(event));
  }

  /** All in one transaction: first the tenants go, then the events come. */
  write(events: Iterable<UsageEvent>, erasedTenantIds: Iterable<string>): void {
    this.#write.immediate(events, erasedTenantIds);
  }

  totals(tenantId: string, month: string): UsageColumns | undefined {
    return this.#select.get(tenantId, month);
  }

  days(tenantId: string, from: string, to: string): readonly UsageDayColumns[] {
    return this.#selectDays.all(tenantId, from, to);
  }

  rateWindows(month: string): readonly RateWindowColumns[] {
    return this.#selectWindows.all(month);
  }

  tenantIds(): readonly string[] {
    return this.#selectTenants.all();
  }

  /**
   * From then on a power cut takes nothing of what was added before the call: SQLite recovers every transaction of
   * the log up to the first that is incomplete, and whoever restarts the log has synced the database first.
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

/** Renames a ledger that nobody has open, so that the next `open` begins a new one; returns its new name. */
export async function setAsideUsage(directory: string): Promise<string> {
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, '-');
  const name = `${usageFile}.damaged-${stamp}`;
  const at = (file: string): string => path.join(directory, file);
  await rm(at(`${usageFile}-shm`), { force: true });
  // The log first: left behind alone, it could be taken for that of the new ledger.
  await rename(at(`${usageFile}-wal`), at(`${name}-wal`)).catch(ignoreMissing);
  await rename(at(usageFile), at(name));
  await syncDirectory(directory);
  return name;
}

/** What is wrong with the ledger of a data directory, also beside a running server; changes nothing. */
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
      connection.prepare(selectUsageSql);
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
    // The directory can be written, so it is the header or the mode of the file that is wrong. Anything else the
    // first event will meet again.
    if (isReadOnly(error)) throw damage(`${usageFile}: ${(error as Error).message}`);
  }
}

function assertSound(connection: Connection): void {
  const [found] = connection.pragma('integrity_check(1)') as { readonly integrity_check: string }[];
  if (found?.integrity_check !== 'ok') throw new Error(found?.integrity_check);
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
