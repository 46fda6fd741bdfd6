/**
 * Keeps things open, by key. A thing is opened at first use, and callers share that. It stays open while it is used. A thing
 * is never open twice: a caller that comes while it closes waits, because opening an index cuts a tail that a writer may
 * still own.
 *
 * Idle things are closed when more than `openMax` are open, and when memory is short. Each time one goes of the owner that has
 * most of what is scarce: of its things, the one that was idle for longest. So an owner that opens many closes its own.
 */
import { assertInvariant } from '../errors.ts';
import type { OpenIndex } from '../index/contract.ts';

type Openable = Pick<OpenIndex, 'usable' | 'busy' | 'close' | 'settled'>;

export interface OpenCacheOptions {
  /** How many stay open when none is in use. */
  readonly openMax: number;
  readonly memory: SharedMemory;
  readonly nowMs: () => number;
}

/** Memory that all open things share. Each owner with an open thing has an equal share of it. */
export interface SharedMemory {
  memory(): { readonly mostBytes: number; readonly takenBytes: number };
  memoryOwners(): readonly { readonly owner: string; readonly takenBytes: number }[];
}

export interface Opening<T> {
  readonly owner: string;
  readonly open: () => Promise<T>;
}

interface Entry<T extends Openable> {
  readonly owner: string;
  readonly opening: Promise<T>;
  readonly closed: PromiseWithResolvers<void>;
  opened: T | undefined;
  users: number;
  usedAtMs: number;
  /** It takes no new user and is closed when the last one leaves. */
  leaving: boolean;
  closing: boolean;
}

/** A thing that was idle for as long as this gives way to anybody. */
const idleMsMax = 300_000;

export class OpenCache<T extends Openable> {
  readonly #openMax: number;
  readonly #memory: SharedMemory;
  readonly #nowMs: () => number;
  /** In order of last use. */
  readonly #entries = new Map<string, Entry<T>>();
  #bounding = false;

  constructor({ openMax, memory, nowMs }: OpenCacheOptions) {
    this.#openMax = openMax;
    this.#memory = memory;
    this.#nowMs = nowMs;
  }

  /** Runs `work` on the thing with this key, which is opened first if it is not open. */
  async use<R>(key: string, opening: Opening<T>, work: (opened: T) => Promise<R>): Promise<R> {
    for (;;) {
      const entry = this.#entries.get(key) ?? this.#open(key, opening);
      if (entry.leaving) {
        await entry.closed.promise;
        continue;
      }
      entry.usedAtMs = this.#nowMs();
      return await this.#useEntry(key, entry, work);
    }
  }

  /** Runs `work` if the thing is open or being opened. Otherwise resolves to `undefined`. It does not keep it from being idle. */
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

  /**
   * Closes an idle thing, so that `owner` finds memory, who would pass its share: one of its own, one of an owner that has more
   * than its share and no less than this one, or one that was idle for long. Resolves to false if there is none.
   */
  async makeRoom(owner: string): Promise<boolean> {
    const { uses, share } = this.#uses();
    const own = uses.get(owner) ?? 0;
    const givesWay = (entry: Entry<T>): boolean => {
      const use = uses.get(entry.owner) ?? 0;
      return entry.owner === owner || (use > share && use >= own);
    };
    const idleSinceMs = this.#nowMs() - idleMsMax;
    const key =
      this.#firstIdle(uses, givesWay) ?? this.#firstIdle(uses, ({ usedAtMs }) => usedAtMs <= idleSinceMs);
    if (key === undefined) return false;
    await this.close(key);
    return true;
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

  #open(key: string, { owner, open }: Opening<T>): Entry<T> {
    const entry: Entry<T> = {
      owner,
      opening: open(),
      closed: Promise.withResolvers(),
      opened: undefined,
      users: 0,
      usedAtMs: this.#nowMs(),
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
      // It fails when the engine is closed, and then nothing is left to close.
      this.#keepBound().catch(() => undefined);
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
    for (let excess = this.openKeys().length - this.#openMax; excess > 0; excess -= 1) {
      const counts = new Map<string, number>();
      for (const { owner, leaving } of this.#entries.values()) {
        if (!leaving) counts.set(owner, (counts.get(owner) ?? 0) + 1);
      }
      const key = this.#firstIdle(counts, () => true);
      if (key === undefined) return;
      void this.close(key);
    }
  }

  /** Memory passes its bound when an owner takes its share while others have more than theirs: those give way then. */
  async #keepBound(): Promise<void> {
    if (this.#bounding) return;
    this.#bounding = true;
    try {
      while (this.#isAboveBound()) {
        const { uses, share } = this.#uses();
        const isAbove = ({ owner }: Entry<T>): boolean => (uses.get(owner) ?? 0) > share;
        const key = this.#firstIdle(uses, isAbove);
        if (key === undefined) return;
        await this.close(key);
      }
    } finally {
      this.#bounding = false;
    }
  }

  #isAboveBound(): boolean {
    const { mostBytes, takenBytes } = this.#memory.memory();
    return takenBytes > mostBytes;
  }

  #uses(): { readonly uses: ReadonlyMap<string, number>; readonly share: number } {
    const owners = this.#memory.memoryOwners();
    const uses = new Map(owners.map(({ owner, takenBytes }) => [owner, takenBytes]));
    return { uses, share: this.#memory.memory().mostBytes / Math.max(1, uses.size) };
  }

  /** Finds the thing of the owner that uses most that was idle for longest. */
  #firstIdle(uses: ReadonlyMap<string, number>, may: (entry: Entry<T>) => boolean): string | undefined {
    let first: { readonly key: string; readonly use: number } | undefined;
    for (const [key, entry] of this.#entries) {
      if (entry.leaving || entry.users > 0 || entry.opened === undefined || entry.opened.busy) continue;
      const use = uses.get(entry.owner) ?? 0;
      if (may(entry) && (first === undefined || use > first.use)) first = { key, use };
    }
    return first?.key;
  }
}
