/**
 * Where segment files live. A blob is written locally while it is active, sealed once, and immutable
 * from then on; an object store would upload at `seal` and download at `open`. Names are relative,
 * `<index id>/<segment id>.seg`, and never leave the root.
 */
export interface BlobStore {
  /** Absolute local path for a new active blob; its directory exists and is durable. */
  create(name: string): Promise<string>;
  /** The blob is complete and synced; make it durable wherever blobs live. */
  seal(name: string): Promise<void>;
  /** Absolute local path of an existing blob, ready to be mapped. */
  open(name: string): Promise<string>;
  /** Every blob (sidecars included) under a prefix, with its bytes. */
  list(prefix: string): Promise<readonly { readonly name: string; readonly bytes: number }[]>;
  /** Idempotent; durable (the directory is synced). */
  remove(name: string): Promise<void>;
  /** Free bytes where active blobs are written. */
  freeBytes(): Promise<number>;
}
