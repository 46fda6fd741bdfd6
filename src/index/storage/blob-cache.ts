/** Where a node keeps local copies of objects: disposable, bounded in bytes, shared by the processes of a host. */

/** An immutable object and its local name. */
export interface CachedFile {
  /** `<index id>/<file>`, relative to the cache. */
  readonly name: string;
  /** Key of the object. */
  readonly key: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface BlobCache {
  /** Absolute local path of the whole, verified file, downloaded if it is not there; callers that come together share a download. Rejects as `ObjectStore.getFile`, and with code `no_space`. */
  fetch(file: CachedFile): Promise<string>;
  /** Absolute path at which this node may write a file that no other has; its directory exists. */
  create(name: string): Promise<string>;
  /** The file at `create`'s path is complete: from now on it counts and may be evicted. */
  adopt(name: string): Promise<void>;
  /** Idempotent; who has the file mapped or open keeps what it reads. */
  remove(name: string): Promise<void>;
  /** Every index that has files here. */
  indexIds(): Promise<readonly string[]>;
  removeIndex(indexId: string): Promise<void>;
  freeBytes(): Promise<number>;
  readonly statistics: {
    readonly bytesMax: number;
    readonly bytes: number;
    readonly files: number;
    readonly hits: number;
    readonly misses: number;
    readonly evictions: number;
  };
}
