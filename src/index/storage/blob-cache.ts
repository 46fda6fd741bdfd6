/** Where a node keeps local copies of objects. They are disposable, bounded in bytes, and shared by the processes of a host. */

/** An immutable object and its local name. */
export interface CachedFile {
  /** `<index id>/<file>`, relative to the cache. */
  readonly name: string;
  readonly key: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** A copy that is read while it is being fetched. Its bytes have not been verified: the reader must verify what it reads. */
export interface PartialCopy {
  /** The file, which has its full length. */
  readonly path: string;
  readonly partBytes: number;
  /** A bit for each part that is here, the first in the lowest bit of the first byte. */
  readonly parts: Uint8Array;
  /**
   * Resolves when these parts, given in ascending order, are here. Rejects as `ObjectStore.readPart` does, and with `corrupt` for
   * an object that is too short.
   */
  need(parts: readonly number[]): Promise<void>;
  /** Resolves when the first part and the last `lastParts` are here. */
  needEnds(lastParts: number): Promise<void>;
  /** Resolves when the whole file is here, however long that takes. Rejects with `ENOENT`, `corrupt`, or after a removal. */
  complete(): Promise<void>;
}

export interface OpenCopy {
  /** Absolute local path that the whole file has, or will have. */
  readonly path: string;
  /** Present while the file is not whole. */
  readonly partial?: PartialCopy;
}

export interface BlobCache {
  /** Begins an epoch of the catalog. Files that are older are compared with their checksums before they are used. */
  followEpoch(epoch: string): Promise<void>;
  /**
   * Absolute local path of the whole, verified file. It is downloaded if it is not here, and callers share a download. The
   * file may be evicted before the caller opens it: fetch it again then. Rejects as `ObjectStore.getFile` does, and with code
   * `no_space`.
   */
  fetch(file: CachedFile): Promise<string>;
  /**
   * Compares a whole file with its checksum. `spend` is awaited for the bytes of each piece. A damaged file is reported and
   * removed, so that the next fetch downloads it.
   */
  verify(
    file: CachedFile,
    spend?: (bytes: number) => Promise<void>,
  ): Promise<'intact' | 'damaged' | 'absent'>;
  /** Opens a file that may be read while it is being fetched. Callers share it. */
  open(file: CachedFile): Promise<OpenCopy>;
  /** Absolute path at which this node may write a new file. Its directory exists. */
  create(name: string): Promise<string>;
  /** Says that the file at the path of `create` is complete. It counts from then on and may be evicted. */
  adopt(name: string): Promise<void>;
  /** The files of an index whose names begin with `prefix`, without copies that are being fetched. */
  list(prefix: string): Promise<readonly { readonly name: string }[]>;
  /** Idempotent. A reader that has the file mapped or open keeps it. */
  remove(name: string): Promise<void>;
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
