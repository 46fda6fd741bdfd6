/**
 * Keeps things open, by key. A thing is opened at first use, and callers share that. It stays open while it is used. When more than
 * `openMax` are open, those that were idle for longest are closed. A thing is never open twice: a caller that comes
 * while it closes waits, because opening an index cuts a tail that a writer may still own.
 */
import { assertInvariant } from '../errors.ts';
import type { OpenIndex } from '../index/contract.ts';

type Openable = Pick<OpenIndex, 'usable' | 'busy' | 'close' | 'settled'>;

export interface OpenCacheOptions {
  /** How many stay open when none is in use. */
  readonly openMax: number;
}

interface Entry<T extends Openable> {
  readonly opening: Promise<T>;
  readonly closed: PromiseWithResolvers<void>;
  opened: T | undefined;
  users: number;
  /** It takes no new user and is closed when the last one leaves. */
  leaving: boolean;
  closing: boolean;
}

export class OpenCache<T extends Openable> {
  readonly #openMax: number;
  /** In order of last use. */
  readonly #entries = new Map<string, Entry<T>>();

  constructor(options: OpenCacheOptions) {
    this.#openMax = options.openMax;
  }

  /** Runs `work` on the thing with this key, which is opened first if it is not open. */
  async use<R>(key: string, open: () => Promise<T>, work: (opened: T) => Promise<R>): Promise<R> {
    for (;;) {
      const entry = this.#entries.get(key) ?? this.#open(key, open);
      if (entry.leaving) await entry.closed.promise;
      else return await this.#useEntry(key, entry, work);
    }
  }

  /** Runs `work` if the thing is open or being opened. Otherwise resolves to `undefined`. */
  async useIfOpen<R>(key: string, work: (opened: T) => Promise<R>): Promise<R | undefined> {
    const entry = this.#entries.get(key);
    return entry === undefined || entry.leaving ? undefined : await this.#useEntry(key, entry, work);
  }

  /** Closes it once its users have left. Resolves when it is closed. */
  async close(key: string): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#leave(key, entry);
    await entry.closed.promise;
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((key) => this.close(key)));
  }

  /** Does not count as a use. `undefined` if it is not open. */
  peek(key: string): T | undefined {
    const entry = this.#entries.get(key);
    return entry?.leaving === false ? entry.opened : undefined;
  }

  openKeys(): readonly string[] {
    return [...this.#entries].flatMap(([key, { leaving }]) => (leaving ? [] : [key]));
  }

  opened(): readonly T[] {
    return [...this.#entries.values()].flatMap(({ opened, leaving }) =>
      opened === undefined || leaving ? [] : [opened],
    );
  }

  #open(key: string, open: () => Promise<T>): Entry<T> {
    const entry: Entry<T> = {
      opening: open(),
      closed: Promise.withResolvers(),
      opened: undefined,
      users: 0,
      leaving: false,
      closing: false,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  async #useEntry<R>(key: string, entry: Entry<T>, work: (opened: T) => Promise<R>): Promise<R> {
    entry.users += 1;
    try {
      entry.opened ??= await entry.opening;
      return await work(entry.opened);
    } finally {
      entry.users -= 1;
      // The last used is the last to be closed.
      this.#entries.delete(key);
      this.#entries.set(key, entry);
      if (entry.leaving || entry.opened?.usable !== true) this.#leave(key, entry);
      this.#closeIdle();
    }
  }

  #leave(key: string, entry: Entry<T>): void {
    entry.leaving = true;
    if (entry.users > 0 || entry.closing) return;
    entry.closing = true;
    assertInvariant(this.#entries.get(key) === entry, 'an entry stays until it is closed');
    if (entry.opened === undefined) {
      this.#closed(key, entry);
      return;
    }
    entry.opened.close();
    // Background work may still write to the catalog. An index that is opened before its end would miss that.
    void entry.opened.settled().finally(() => this.#closed(key, entry));
  }

  #closed(key: string, entry: Entry<T>): void {
    this.#entries.delete(key);
    entry.closed.resolve();
  }

  #closeIdle(): void {
    if (this.#entries.size <= this.#openMax) return;
    let excess = this.openKeys().length - this.#openMax;
    for (const [key, entry] of this.#entries) {
      if (excess <= 0) return;
      if (entry.leaving || entry.users > 0 || entry.opened === undefined || entry.opened.busy) continue;
      this.#leave(key, entry);
      excess -= 1;
    }
  }
}
