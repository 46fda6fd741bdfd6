/**
 * The open indexes: opened at first use (callers that come together share one open), kept while they are
 * used, and beyond `openMax` the one idle for longest is closed. An index is open at most once: whoever
 * wants it while it is being closed waits, because opening cuts the tail that a writer may still own.
 */
import { assertInvariant } from '../../errors.ts';
import type { OpenIndex } from '../../index/contract.ts';

export interface OpenIndexesOptions {
  /** Indexes kept open when none of them is in use. */
  readonly openMax: number;
}

interface Entry {
  readonly opening: Promise<OpenIndex>;
  readonly closed: PromiseWithResolvers<void>;
  index: OpenIndex | undefined;
  users: number;
  /** No new user; closed when the last one leaves. */
  leaving: boolean;
  /** The last one has left. */
  closing: boolean;
}

export class OpenIndexes {
  readonly #openMax: number;
  /** In order of last use. */
  readonly #entries = new Map<string, Entry>();

  constructor(options: OpenIndexesOptions) {
    this.#openMax = options.openMax;
  }

  /** Runs `work` on the index, opening it if need be. */
  async use<T>(
    indexId: string,
    open: () => Promise<OpenIndex>,
    work: (index: OpenIndex) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      const entry = this.#entries.get(indexId) ?? this.#open(indexId, open);
      if (entry.leaving) await entry.closed.promise;
      else return await this.#useEntry(indexId, entry, work);
    }
  }

  /** Runs `work` if the index is open or being opened; `undefined` otherwise. */
  async useIfOpen<T>(indexId: string, work: (index: OpenIndex) => Promise<T>): Promise<T | undefined> {
    const entry = this.#entries.get(indexId);
    return entry === undefined || entry.leaving ? undefined : await this.#useEntry(indexId, entry, work);
  }

  /** Closes the index once its users have left; resolves when it is closed (at once when it is not open). */
  async close(indexId: string): Promise<void> {
    const entry = this.#entries.get(indexId);
    if (entry === undefined) return;
    this.#leave(indexId, entry);
    await entry.closed.promise;
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((indexId) => this.close(indexId)));
  }

  /** Ids of the indexes that are open now. */
  openIds(): readonly string[] {
    return [...this.#entries].flatMap(([indexId, { leaving }]) => (leaving ? [] : [indexId]));
  }

  openIndexes(): readonly OpenIndex[] {
    return [...this.#entries.values()].flatMap(({ index, leaving }) =>
      index === undefined || leaving ? [] : [index],
    );
  }

  #open(indexId: string, open: () => Promise<OpenIndex>): Entry {
    const entry: Entry = {
      opening: open(),
      closed: Promise.withResolvers(),
      index: undefined,
      users: 0,
      leaving: false,
      closing: false,
    };
    this.#entries.set(indexId, entry);
    return entry;
  }

  async #useEntry<T>(indexId: string, entry: Entry, work: (index: OpenIndex) => Promise<T>): Promise<T> {
    entry.users += 1;
    try {
      entry.index ??= await entry.opening;
      return await work(entry.index);
    } finally {
      entry.users -= 1;
      // Last used, last in line for closing.
      this.#entries.delete(indexId);
      this.#entries.set(indexId, entry);
      if (entry.leaving || entry.index?.usable !== true) this.#leave(indexId, entry);
      this.#closeIdle();
    }
  }

  #leave(indexId: string, entry: Entry): void {
    entry.leaving = true;
    if (entry.users > 0 || entry.closing) return;
    entry.closing = true;
    assertInvariant(this.#entries.get(indexId) === entry, 'an entry stays until it is closed');
    if (entry.index === undefined) {
      this.#closed(indexId, entry);
      return;
    }
    entry.index.close();
    // Background work that is cut short may still be at the catalog: an index opened now would not see its end.
    void entry.index.settled().finally(() => this.#closed(indexId, entry));
  }

  #closed(indexId: string, entry: Entry): void {
    this.#entries.delete(indexId);
    entry.closed.resolve();
  }

  #closeIdle(): void {
    let excess = this.openIds().length - this.#openMax;
    for (const [indexId, entry] of this.#entries) {
      if (excess <= 0) return;
      if (entry.leaving || entry.users > 0 || entry.index === undefined || entry.index.busy) continue;
      this.#leave(indexId, entry);
      excess -= 1;
    }
  }
}
