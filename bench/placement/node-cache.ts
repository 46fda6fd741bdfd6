/**
 * What one node has of indexes, by the rules of the program: the indexes used last are open (`service/indexes`), the files
 * opened last are on the disk (`index/storage/local-blob-cache.ts`). A search of an open index uses no file, and files
 * that go while their index is open are freed when it is closed.
 */

/** `open`: nothing to do; `warm`: opened from the disk; `cold`: fetched from the object store. */
export type Access = 'open' | 'warm' | 'cold';

/** So much of the bound goes at a time. */
const evictedShare = 0.1;

export class NodeCache {
  readonly #bytesMax: number;
  readonly #openMax: number;
  /** Bytes by index, in order of last opening. */
  readonly #files = new Map<number, number>();
  /** Bytes by index, in order of last use. */
  readonly #open = new Map<number, number>();
  #bytes = 0;
  #unlinkedBytes = 0;

  constructor(options: { readonly bytesMax: number; readonly openMax: number }) {
    this.#bytesMax = options.bytesMax;
    this.#openMax = options.openMax;
  }

  /** On the disk, with files that have lost their names. */
  get diskBytes(): number {
    return this.#bytes + this.#unlinkedBytes;
  }

  use(index: number, bytes: number): Access {
    const wasOpen = this.#open.delete(index);
    this.#open.set(index, bytes);
    if (wasOpen) return 'open';
    this.#closeIdle();
    const wasThere = this.#files.delete(index);
    this.#files.set(index, bytes);
    if (wasThere) return 'warm';
    this.#bytes += bytes;
    if (this.#bytes > this.#bytesMax) this.#evict();
    return 'cold';
  }

  #closeIdle(): void {
    for (const [index, bytes] of this.#open) {
      if (this.#open.size <= this.#openMax) return;
      this.#open.delete(index);
      if (!this.#files.has(index)) this.#unlinkedBytes -= bytes;
    }
  }

  #evict(): void {
    for (const [index, bytes] of this.#files) {
      if (this.#bytes <= this.#bytesMax * (1 - evictedShare)) return;
      this.#files.delete(index);
      this.#bytes -= bytes;
      if (this.#open.has(index)) this.#unlinkedBytes += bytes;
    }
  }
}
