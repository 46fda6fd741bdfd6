/**
 * The usage of this process, in `usage.db` before its request is answered.
 *
 * What cannot be written is summed up in memory and written as soon as that is possible. While the reason is one that
 * passes in moments (the log is being restarted, another process holds the lock) the request waits for it.
 * Otherwise (no space, a disk that fails or is read-only, a damaged ledger) requests go on, and only the death of
 * the process would lose what memory holds.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { UsageEvent } from '../../../document-commits.ts';
import { ServiceError, assertInvariant } from '../../../errors.ts';
import type { SpaceReserve } from '../../space-reserve.ts';
import type { CheckpointOperations } from '../threads/checkpoint-thread.ts';
import { isBusy, isDamage, isOutOfSpace } from '../connection.ts';
import { usageColumns } from '../rows.ts';
import type { RateWindowColumns, UsageColumns, UsageDayColumns } from '../rows.ts';
import { ThreadClient } from '../threads/thread-client.ts';
import type { ThreadOptions } from '../threads/thread-client.ts';
import { UsageStore, setAsideUsage } from './usage-store.ts';
import { UsageSums, usageSumsMax } from './usage-sums.ts';

export interface UsageLedgerOptions {
  readonly directory: string;
  /** This process may replace a damaged ledger: no other one has it open for long. */
  readonly owned: boolean;
  /** Usage must not eat what it released. */
  readonly reserve: Pick<SpaceReserve, 'held' | 'release'>;
  readonly thread: ThreadOptions;
  /** What the operator should know. */
  readonly onNotice: (notice: string, cause?: unknown) => void;
}

/** As the triggers of the schema have it. */
function dayOf(month: string): string {
  const today = new Date().toISOString().slice(0, 10);
  const [year = 0, number = 0] = month.split('-').map(Number);
  return today.startsWith(month) ? today : new Date(Date.UTC(year, number, 0)).toISOString().slice(0, 10);
}

/** With the time of the sync itself a power cut takes no more than the last second. */
const upkeepIntervalMs = 500;
/** A transaction is two frames of the log, rarely more; so many fill 16 MiB and the first page of its index. */
const restartTransactions = 2_000;
/** How long a request waits for its usage to be written, and how often it looks. */
const patienceMs = 2_000;
const lookMs = 5;
/** Written at once: some milliseconds. */
const batchMax = 1_000;
/** A disk that damages whatever is written to it must not be filled with ledgers. */
const setAsideIntervalMs = 60_000;

export class UsageLedger {
  readonly #options: UsageLedgerOptions;
  readonly #waiting = new UsageSums();
  readonly #erased = new Set<string>();
  readonly #upkeep: NodeJS.Timeout;
  #thread: ThreadClient<CheckpointOperations>;
  #store: UsageStore | undefined;
  /** Why usage goes to memory now. */
  #obstacle: 'passing' | 'lasting' | undefined;
  #transactions = 0;
  #restarting: Promise<void> | undefined;
  #opening: Promise<void> | undefined;
  #setAsideAt = Number.NEGATIVE_INFINITY;
  #unsynced = false;
  #syncing: Promise<void> | undefined;
  /**
   * A sync of the log failed. The kernel may have dropped what it could not write, a later sync says nothing of it, and
   * recovery ends there: only the database is sure to hold what the log holds.
   */
  #logDoubtful = false;
  #closed: Promise<void> | undefined;

  /** A ledger that cannot be opened now is opened later; throws for one that a newer program wrote. */
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

  /** Tenants, by month, whose usage waits in memory. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Throws `service_unavailable` when memory is full too; the event then counts nothing. */
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

  /** What is recorded of a tenant's month, in parts to be added up. */
  totals(tenantId: string, month: string): readonly UsageColumns[] {
    const waiting = this.#waiting.get(tenantId, month);
    const written = this.#erased.has(tenantId)
      ? undefined
      : this.#read((store) => store.totals(tenantId, month));
    return [
      ...(written === undefined ? [] : [written]),
      ...(waiting === undefined ? [] : [usageColumns(waiting)]),
    ];
  }

  /** Likewise for days: those of what waits are the days of now. */
  days(tenantId: string, from: string, to: string): readonly UsageDayColumns[] {
    const written = this.#erased.has(tenantId) ? [] : this.#read((store) => store.days(tenantId, from, to));
    const waiting = this.#waiting
      .ofTenant(tenantId)
      .map((sum) => ({ ...usageColumns(sum), day: dayOf(sum.month) }))
      .filter(({ day }) => from <= day && day <= to);
    return [...written, ...waiting];
  }

  /** None while the ledger cannot be opened: a start goes on without them. */
  rateWindows(month: string): readonly RateWindowColumns[] {
    return this.#store === undefined ? [] : this.#read((store) => store.rateWindows(month));
  }

  /** The tenants with usage in any month; none while the ledger cannot be opened. */
  tenantIds(): readonly string[] {
    return this.#store === undefined ? [] : this.#read((store) => store.tenantIds());
  }

  /** Soon, if it cannot be done now; after a crash, at the next start. */
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

  /** Whether the event is written. */
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

  /** Whether everything that waited is written. */
  #flush(): boolean {
    if (this.#restarting !== undefined || !this.#writeBatch()) return false;
    if (this.#waiting.size > 0) {
      // The event loop is not held for longer than one batch takes.
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

  /** At the end of the process nothing is more urgent. */
  #assertRoom(): void {
    if (this.#closed === undefined && !this.#options.reserve.held) throw unavailable('the disk is full');
  }

  #written(): void {
    this.#unsynced = true;
    this.#transactions += 1;
    // A request that meets the restart waits for no thread to start.
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

  /** Whoever restarts a log waits for the disk, so the thread does it, and nothing is written meanwhile. */
  #beginRestart(): void {
    this.#transactions = 0;
    this.#obstacle ??= 'passing';
    this.#restarting = this.#restartLog();
  }

  async #restartLog(): Promise<void> {
    try {
      if (await this.#thread.request('restartLog', undefined)) this.#logDoubtful = false;
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

  /** Tries to open what could not be opened, or is found to be damaged. */
  #reopen(damage?: unknown): void {
    if (this.#closed !== undefined) return;
    this.#opening ??= this.#open(damage)
      .catch((error: unknown) => this.#obstruct(error))
      .finally(() => {
        this.#opening = undefined;
      });
  }

  /** Rejects for a ledger of a newer program only. */
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
