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

/** A copy that is read while it is being fetched. Nothing has compared its bytes yet: who reads them must. */
export interface PartialCopy {
  /** Where it lies, at its full length. */
  readonly path: string;
  readonly partBytes: number;
  /** One bit a part that has come, the first in the lowest bit of the first byte. */
  readonly parts: Uint8Array;
  /** Resolves when these, in ascending order, have come. Rejects as `ObjectStore.readPart`, and with `corrupt` for an object that is too short. */
  need(parts: readonly number[]): Promise<void>;
  /** Resolves when the first part and so many last ones have come. */
  needEnds(lastParts: number): Promise<void>;
  /** Resolves when it is the whole file, however long that takes. Rejects with `ENOENT` or `corrupt`, or when it was removed. */
  complete(): Promise<void>;
}

export interface OpenCopy {
  /** Absolute local path of the whole file. */
  readonly path: string;
  /** What there is of it while it is not whole. */
  readonly partial?: PartialCopy;
}

export interface BlobCache {
  /** Files that have lain here since before this epoch of the catalog are compared with their checksums before they are used. */
  followEpoch(epoch: string): Promise<void>;
  /** Absolute local path of the whole, verified file, downloaded if it is not there; callers that come together share a download. It may be evicted before it is opened: fetch it once more then. Rejects as `ObjectStore.getFile`, and with code `no_space`. */
  fetch(file: CachedFile): Promise<string>;
  /** The same file, to be read while it is being fetched: nothing of it need be there. Callers share what comes. */
  open(file: CachedFile): Promise<OpenCopy>;
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
