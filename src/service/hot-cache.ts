/**
 * Keeps rows that every request needs for at most `ageMsMax`, because another process (the command line, another node) may
 * change them, and its changes must hold within seconds. An absent row is not kept.
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

  get size(): number {
    return this.#rows.size;
  }

  /** The row as it was at most `ageMsMax` ago. Callers share a load. */
  async get(key: string, load: () => Promise<Value | undefined>): Promise<Value | undefined> {
    const row = this.#rows.get(key);
    if (row !== undefined) return row;
    const loading = this.#loading.get(key) ?? this.#load(key, load);
    return await loading;
  }

  /** The next `get` loads the row again. The result of a load under way is not kept. */
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

  /** Removes rows past their age, once in `ageMsMax`, since it looks at every row. */
  #purge(): void {
    if (this.#nowMs() - this.#purgedAtMs < this.#ageMsMax) return;
    this.#purgedAtMs = this.#nowMs();
    this.#rows.purgeStale();
  }
}
