/**
 * Rows that every request needs, kept for at most `maxAgeMs`: another process (the command line) changes
 * them too, and what it did must hold within seconds. Absent rows are not kept, and those past their age go
 * with the next load.
 */
import { LRUCache } from 'lru-cache';

export class HotCache<Value extends object> {
  readonly #rows: LRUCache<string, Value>;
  readonly #loading = new Map<string, Promise<Value | undefined>>();
  readonly #ageMsMax: number;
  readonly #nowMs: () => number;
  #purgedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: {
    readonly rowsMax: number;
    readonly ageMsMax: number;
    /** A clock that never steps back, or a row could outlive its age. */
    readonly nowMs?: () => number;
  }) {
    this.#ageMsMax = options.ageMsMax;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#rows = new LRUCache({
      max: options.rowsMax,
      ttl: options.ageMsMax,
      ttlResolution: 0,
      perf: { now: this.#nowMs },
    });
  }

  /** Rows held. */
  get size(): number {
    return this.#rows.size;
  }

  /** The row as it was at most `maxAgeMs` ago; callers that come at the same time share one load. */
  async get(key: string, load: () => Promise<Value | undefined>): Promise<Value | undefined> {
    const row = this.#rows.get(key);
    if (row !== undefined) return row;
    const loading = this.#loading.get(key) ?? this.#load(key, load);
    return await loading;
  }

  /** The next `get` loads anew; a load under way is not kept. */
  forget(key: string): void {
    this.#rows.delete(key);
    this.#loading.delete(key);
  }

  forgetAll(): void {
    this.#rows.clear();
    this.#loading.clear();
  }

  #load(key: string, load: () => Promise<Value | undefined>): Promise<Value | undefined> {
    this.#purge();
    const loading = load()
      .then((row) => {
        if (row !== undefined && this.#loading.get(key) === loading) this.#rows.set(key, row);
        return row;
      })
      .finally(() => {
        if (this.#loading.get(key) === loading) this.#loading.delete(key);
      });
    this.#loading.set(key, loading);
    return loading;
  }

  /** Once in `maxAgeMs`, since it looks at every row. */
  #purge(): void {
    if (this.#nowMs() - this.#purgedAtMs < this.#ageMsMax) return;
    this.#purgedAtMs = this.#nowMs();
    this.#rows.purgeStale();
  }
}
