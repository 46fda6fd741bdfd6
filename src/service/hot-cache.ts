/**
 * Rows that every request needs, kept for at most `maxAgeMs`: another process (the command line) changes
 * them too, and what it did must hold within seconds. Absent rows are not kept.
 */
import { LRUCache } from 'lru-cache';

export class HotCache<Value extends object> {
  readonly #rows: LRUCache<string, Value>;
  readonly #loading = new Map<string, Promise<Value | undefined>>();

  constructor(options: {
    readonly rowsMax: number;
    readonly maxAgeMs: number;
    /** A clock that never steps back, or a row could outlive its age. */
    readonly nowMs?: () => number;
  }) {
    this.#rows = new LRUCache({
      max: options.rowsMax,
      ttl: options.maxAgeMs,
      ttlResolution: 0,
      perf: { now: options.nowMs ?? (() => performance.now()) },
    });
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

  #load(key: string, load: () => Promise<Value | undefined>): Promise<Value | undefined> {
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
}
