/**
 * Where nodes keep the files that they share: immutable objects under keys that the catalog names. No node relies on
 * listing, renaming or conditional writes.
 */

export interface PutObject {
  readonly bytes: number;
  /** SHA-256 of the bytes, 64 hexadecimal digits. */
  readonly sha256: string;
}

export interface ObjectStore {
  /**
   * Uploads a local file, durably. Resolves to what was sent, as the store confirmed it. Rejects with `service_unavailable`
   * when the store does not take it.
   */
  putFile(key: string, path: string): Promise<PutObject>;
  /**
   * Downloads to a new file at `path`, which must not exist, and compares it with what the catalog says. A file that differs
   * is removed. Rejects with code `ENOENT` when there is no such object, with code `corrupt` when it differs twice, with
   * `service_unavailable` when the store cannot be asked.
   */
  getFile(key: string, path: string, expected: PutObject): Promise<void>;
  /**
   * Reads `bytes` bytes of an object, or as many as it has from `first` on. No checksum covers them. Rejects with `ENOENT` and
   * `service_unavailable` as `getFile` does.
   */
  readPart(key: string, first: number, bytes: number): Promise<Buffer>;
  /** Idempotent. */
  remove(key: string): Promise<void>;
  /** Puts and reads back a small object, at most every few seconds. Rejects when the store does not answer. */
  ping(): Promise<void>;
  close(): void;
}
