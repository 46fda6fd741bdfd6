/**
 * The usage of this process. It is written to `usage.db` before its request is answered.
 *
 * Usage that cannot be written is summed up in memory and written as soon as possible. If the obstacle passes in moments (the
 * log is being restarted, another process holds the lock), the request waits. Otherwise (no space, a disk that fails or is
 * read-only, a damaged ledger) requests go on, and only the death of the process loses what memory holds.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { UsageEvent } from '../../../contracts/document-commits.ts';
import { ServiceError, assertInvariant } from '../../../errors.ts';
import type { SpaceReserve } from '../../space-reserve.ts';
import type { CheckpointOperations } from '../threads/checkpoint-thread.ts';
import { isBusy, isDamage, isOutOfSpace } from '../connection.ts';
import type { UsagePart } from '../../rows.ts';
import { ThreadClient } from '../threads/thread-client.ts';
import type { ThreadOptions } from '../threads/thread-client.ts';
import type { RateWindow, UsageDayPart } from './usage-statements.ts';
import { UsageStore, setAsideUsage } from './usage-store.ts';
import { UsageSums, usageSumsMax } from './usage-sums.ts';

export interface UsageLedgerOptions {
  readonly directory: string;
  /** This process may replace a damaged ledger, because no other one has it open for long. */
  readonly owned: boolean;
  /** While it is released, usage is not written, so that it does not use up the space. */
  readonly reserve: Pick<SpaceReserve, 'held' | 'release'>;
  readonly thread: ThreadOptions;
  /** Receives notices for the operator. */
  readonly onNotice: (notice: string, cause?: unknown) => void;
}

/** The day that usage of a month counts on, as in the triggers of the schema. */
function dayOf(month: string): string {
  const today = new Date().toISOString().slice(0, 10);
  const [year = 0, number = 0] = month.split('-').map(Number);
  return today.startsWith(month) ? today : new Date(Date.UTC(year, number, 0)).toISOString().slice(0, 10);
}

/** With the time of the sync itself, a power cut takes at most the last second. */
const upkeepIntervalMs = 500;
/** The log is restarted after so many transactions. Each has two frames, rarely more, so that the log has 16 MiB. */
const restartTransactions = 2_000;
/** How long a request waits for its usage to be written, and the interval at which it tries. */
const patienceMs = 2_000;
const lookMs = 5;
/** Sums of a batch, which takes some milliseconds. */
const batchMax = 1_000;
/** The least time between two replacements, so that a disk that damages every write is not filled with ledgers. */
const setAsideIntervalMs = 60_000;

export class UsageLedger {
  readonly #options: UsageLedgerOptions;
  readonly #waiting = new UsageSums();
  readonly #erased = new Set<string>();
  readonly #upkeep: NodeJS.Timeout;
  #thread: ThreadClient<CheckpointOperations>;
  #store: UsageStore | undefined;
  /** Why usage goes to memory now; absent when it is written. */
  #obstacle: 'passing' | 'lasting' | undefined;
  #transactions = 0;
  #restarting: Promise<void> | undefined;
  #opening: Promise<void> | undefined;
  #setAsideAt = Number.NEGATIVE_INFINITY;
  #unsynced = false;
  #syncing: Promise<void> | undefined;
  /**
   * A sync of the log failed. The kernel may have dropped what it could not write, and a later sync does not report that.
   * Recovery would end at the gap. So the log must be copied into the database.
   */
  #logDoubtful = false;
  #closed: Promise<void> | undefined;

  /** A ledger that cannot be opened now is opened later. Throws for a ledger of a newer program. */
  static async open(options: UsageLedgerOptions): Promise<UsageLedger> {
    const ledger = new UsageLedger(options);
    try {
      await ledger.#open();
      return ledger;
    } catch (error) {
      await ledger.close();
      throw error;
    }
  }

  private constructor(options: UsageLedgerOptions) {
    this.#options = options;
    this.#thread = new ThreadClient(options.thread);
    this.#upkeep = setInterval(() => this.#maintain(), upkeepIntervalMs).unref();
  }

  /** Counts tenants, by month, whose usage waits in memory. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Throws `service_unavailable` when too much waits in memory. Then the event counts nothing. */
  async record(event: UsageEvent): Promise<void> {
    assertInvariant(this.#closed === undefined, 'the catalog is closed');
    if (this.#obstacle === undefined && this.#add(event)) return;
    if (!this.#waiting.add(event)) {
      throw unavailable(`the usage of ${usageSumsMax} tenants waits to be written`);
    }
    const began = performance.now();
    while (this.#obstacle === 'passing') {
      await delay(lookMs);
      if (this.#flush()) return;
      if (performance.now() - began > patienceMs) this.#obstruct(new Error('the ledger is locked'));
    }
  }

  /** The usage of a tenant in a month, in parts to be added up. */
  totals(tenantId: string, month: string): readonly UsagePart[] {
    const written = this.#erased.has(tenantId) ? [] : this.#read((store) => store.totals(tenantId, month));
    const waiting = this.#waiting.get(tenantId, month);
    return waiting === undefined ? written : [...written, waiting];
  }

  /** The usage of a tenant by day, in parts. Usage that waits counts as if it were written now. */
  days(tenantId: string, from: string, to: string): readonly UsageDayPart[] {
    const written = this.#erased.has(tenantId) ? [] : this.#read((store) => store.days(tenantId, from, to));
    const waiting = this.#waiting
      .ofTenant(tenantId)
      .map((sum) => ({ ...sum, day: dayOf(sum.month) }))
      .filter(({ day }) => from <= day && day <= to);
    return [...written, ...waiting];
  }

  /** Empty while the ledger cannot be opened, so that a start goes on. */
  rateWindows(month: string): readonly RateWindow[] {
    return this.#store === undefined ? [] : this.#read((store) => store.rateWindows(month));
  }

  /** The tenants with usage in any month. Empty while the ledger cannot be opened. */
  tenantIds(): readonly string[] {
    return this.#store === undefined ? [] : this.#read((store) => store.tenantIds());
  }

  /** Erases the usage of a tenant, or tries again until that works. After a crash the next start does it. */
  eraseTenant(tenantId: string): void {
    this.#waiting.eraseTenant(tenantId);
    this.#erased.add(tenantId);
    this.#flush();
  }

  /** Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#finish();
    return this.#closed;
  }

  async #finish(): Promise<void> {
    clearInterval(this.#upkeep);
    await Promise.all([this.#restarting, this.#opening, this.#syncing]);
    while (this.#waiting.size + this.#erased.size > 0 && this.#writeBatch());
    if (this.#waiting.size > 0) {
      this.#options.onNotice(`the usage of ${this.#waiting.size} tenants could not be written and is lost`);
    }
    await this.#thread.close();
    this.#closeStore();
  }

  /** Returns whether the event is written. */
  #add(event: UsageEvent): boolean {
    try {
      if (this.#store === undefined) return false;
      this.#assertRoom();
      this.#store.add(event);
    } catch (error) {
      this.#obstruct(error);
      return false;
    }
    this.#written();
    return true;
  }

  /** Writes a batch. Returns whether everything that waited is written. */
  #flush(): boolean {
    if (this.#restarting !== undefined || !this.#writeBatch()) return false;
    if (this.#waiting.size > 0) {
      // Between two batches the event loop goes on.
      setImmediate(() => this.#flush());
      return false;
    }
    if (this.#obstacle === 'lasting') this.#options.onNotice('usage is written to the disk again');
    this.#obstacle = undefined;
    return true;
  }

  #writeBatch(): boolean {
    if (this.#store === undefined) return false;
    if (this.#waiting.size + this.#erased.size === 0) return true;
    const sums = this.#waiting.oldest(batchMax);
    try {
      this.#assertRoom();
      this.#store.write(sums, this.#erased);
    } catch (error) {
      this.#obstruct(error);
      return false;
    }
    this.#waiting.remove(sums);
    this.#erased.clear();
    this.#written();
    return true;
  }

  /** At the end of the process usage may use up the reserve. */
  #assertRoom(): void {
    if (this.#closed === undefined && !this.#options.reserve.held) throw unavailable('the disk is full');
  }

  #written(): void {
    this.#unsynced = true;
    this.#transactions += 1;
    // The thread is started early, so that the restart does not wait for it.
    if (this.#transactions === restartTransactions / 2) this.#thread.start();
    if (this.#transactions >= restartTransactions) this.#beginRestart();
  }

  #obstruct(cause: unknown): void {
    if (isBusy(cause) && this.#obstacle !== 'lasting') {
      this.#obstacle = 'passing';
      return;
    }
    if (this.#obstacle !== 'lasting') this.#options.onNotice('usage waits in memory to be written', cause);
    this.#obstacle = 'lasting';
    if (isDamage(cause) && this.#mayReplace()) this.#reopen(cause);
  }

  /** Restarting a log waits for the disk. So a thread does it, and nothing is written meanwhile. */
  #beginRestart(): void {
    this.#transactions = 0;
    this.#obstacle ??= 'passing';
    this.#restarting = this.#restartLog();
  }

  async #restartLog(): Promise<void> {
    try {
      if (await this.#thread.request('restartLog')) this.#logDoubtful = false;
    } catch (error) {
      this.#options.onNotice('the log of the usage ledger could not be emptied', error);
    }
    this.#restarting = undefined;
    this.#flush();
  }

  #maintain(): void {
    if (this.#store === undefined) this.#reopen();
    else if (this.#obstacle !== undefined || this.#erased.size > 0) this.#flush();
    if (this.#logDoubtful) {
      if (this.#restarting === undefined) this.#beginRestart();
    } else if (this.#unsynced && this.#syncing === undefined) {
      this.#syncing = this.#sync();
    }
  }

  async #sync(): Promise<void> {
    this.#unsynced = false;
    try {
      await this.#store?.sync();
    } catch (error) {
      this.#logDoubtful = true;
      this.#options.onNotice('usage could not be synced to the disk', error);
    } finally {
      this.#syncing = undefined;
    }
  }

  /** Tries to open a ledger that could not be opened, or that is damaged. */
  #reopen(damage?: unknown): void {
    if (this.#closed !== undefined) return;
    this.#opening ??= this.#open(damage)
      .catch((error: unknown) => this.#obstruct(error))
      .finally(() => {
        this.#opening = undefined;
      });
  }

  /** Rejects only for a ledger of a newer program. */
  async #open(damage?: unknown): Promise<void> {
    const { directory, owned } = this.#options;
    try {
      if (damage !== undefined) await this.#setAside(damage);
      this.#store = await UsageStore.open(directory, { checked: owned });
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      if (isOutOfSpace(error) && this.#options.reserve.release()) return this.#open();
      return isDamage(error) && this.#mayReplace() ? this.#open(error) : this.#obstruct(error);
    }
    if (this.#obstacle !== undefined) this.#flush();
  }

  #mayReplace(): boolean {
    return this.#options.owned && performance.now() - this.#setAsideAt > setAsideIntervalMs;
  }

  async #setAside(damage: unknown): Promise<void> {
    const { directory, thread, onNotice } = this.#options;
    this.#setAsideAt = performance.now();
    await Promise.all([this.#syncing, this.#thread.close()]);
    this.#thread = new ThreadClient(thread);
    this.#closeStore();
    const name = await setAsideUsage(directory);
    onNotice(`the usage ledger is damaged: it was set aside as ${name}, and a new one is begun`, damage);
  }

  #closeStore(): void {
    this.#store?.close();
    this.#store = undefined;
  }

  #read<Result>(read: (store: UsageStore) => Result): Result {
    if (this.#store === undefined) throw unavailable('it cannot be opened');
    try {
      return read(this.#store);
    } catch (error) {
      if (isDamage(error)) this.#obstruct(error);
      throw unavailable('it cannot be read', error);
    }
  }
}

function unavailable(reason: string, cause?: unknown): ServiceError {
  return new ServiceError('service_unavailable', `the usage ledger is not available now: ${reason}`, {
    retryAfterSeconds: 1,
    cause,
  });
}
