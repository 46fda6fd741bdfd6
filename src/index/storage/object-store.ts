/**
 * Where the files of several nodes live: immutable objects under keys that the catalog names. Nothing else is relied
 * upon: no listing, no rename, no conditional write.
 */
export interface ObjectStore {
  /**
   * Uploads a local file; durable when settled. `sha256` (64 hexadecimal digits) is of the bytes that were sent, as the
   * store confirmed them. Rejects with `service_unavailable` when the store does not take it.
   */
  putFile(key: string, path: string): Promise<{ readonly bytes: number; readonly sha256: string }>;
  /**
   * Downloads to a new file at `path`, which must not exist, and compares it with what the catalog says; a file that differs is removed.
   * Rejects with code `ENOENT` when there is no such object, with code `corrupt` when it differs (after a second try),
   * with `service_unavailable` when the store cannot be asked.
   */
  getFile(
    key: string,
    path: string,
    expected: { readonly bytes: number; readonly sha256: string },
  ): Promise<void>;
  /** So many bytes of an object, or as many as there are; no checksum says that they are right. Rejects with `ENOENT` and `service_unavailable` as `getFile`. */
  readPart(key: string, first: number, bytes: number): Promise<Buffer>;
  /** Idempotent. */
  remove(key: string): Promise<void>;
  /** Whether the store answers (readiness): a small object is put and read back at most every few seconds. */
  ping(): Promise<void>;
  close(): void;
}
