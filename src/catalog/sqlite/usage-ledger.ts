/** The usage of this process: appended to its journal at once, folded into `usage.db` soon after. */
import type { UsageEvent } from '../contract.ts';
import { ThreadClient } from './thread-client.ts';
import type { ThreadOptions } from './thread-client.ts';
import { UsageJournal } from './usage-journal.ts';
import type { UsageOperations } from './usage-operations.ts';

/** One transaction for all that was recorded meanwhile; bounds what readers have to add up. */
const foldDelayMs = 100;

export class UsageLedger {
  readonly #journal: UsageJournal;
  readonly #writer: ThreadClient<UsageOperations>;
  readonly #onBackgroundFailure: (error: Error) => void;
  #timer: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;

  constructor(directory: string, thread: ThreadOptions) {
    this.#journal = new UsageJournal(directory);
    this.#writer = new ThreadClient(thread);
    this.#onBackgroundFailure = thread.onBackgroundFailure;
  }

  /** Survives the death of the process when it returns. Throws `service_unavailable`; the event then counts nothing. */
  record(event: UsageEvent): void {
    if (this.#closed !== undefined) throw new Error('this is a bug: the catalog is closed');
    this.#journal.append(event);
    this.#timer ??= setTimeout(() => void this.#fold(), foldDelayMs).unref();
  }

  async eraseTenant(tenantId: string): Promise<void> {
    await this.#writer.request('deleteTenantUsage', tenantId);
  }

  /** Resolves when both the journal and the database take writes. */
  async ping(): Promise<void> {
    this.#journal.open();
    await this.#writer.request('ping', undefined);
  }

  /** Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#finish();
    return this.#closed;
  }

  async #finish(): Promise<void> {
    clearTimeout(this.#timer);
    this.#journal.leave();
    if (this.#journal.hasLeft) await this.#fold();
    await this.#writer.close();
  }

  /** What cannot be folded now stays in its file, for the next time or the next start. Never rejects. */
  async #fold(): Promise<void> {
    this.#timer = undefined;
    const left = this.#journal.takeLeft();
    try {
      await this.#writer.request('foldJournals', undefined);
      this.#journal.remove(left);
    } catch (error) {
      this.#onBackgroundFailure(error as Error);
    }
  }
}
