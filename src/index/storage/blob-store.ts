/**
 * Where segment files live. A blob is written locally while it is active, sealed once, and immutable from then on. Names
 * are relative, `<index id>/<segment id>.seg`, and never leave the root.
 */
import { withCode } from '../../system-errors.ts';

export interface BlobStore {
  /** Absolute local path for a new active blob. Its directory exists and is durable. */
  create(name: string): Promise<string>;
  /** Makes a complete and synced blob durable. */
  seal(name: string): Promise<void>;
  /** Absolute local path of an existing blob, ready to be mapped. */
  open(name: string): Promise<string>;
  /** Every blob (sidecars included) under a prefix, with its bytes. */
  list(prefix: string): Promise<readonly { readonly name: string; readonly bytes: number }[]>;
  /** Idempotent and durable: the directory is synced. */
  remove(name: string): Promise<void>;
  freeBytes(): Promise<number>;
}

/** Files that can be listed and removed by name, here or in a node's cache. */
export interface Removable {
  list(prefix: string): Promise<readonly { readonly name: string }[]>;
  remove(name: string): Promise<void>;
}

/** Removes every blob whose name starts with `prefix`: a segment with its sidecars, or a whole index. */
export async function removeBlobs(blobs: Removable, prefix: string): Promise<void> {
  for (const { name } of await blobs.list(prefix)) await blobs.remove(name);
}

/**
 * Rejects with code `no_space`, as a write would, when less than `neededBytes` is free. Background work asks first, so
 * that it neither takes the space of upserts nor begins work that cannot end.
 */
export async function assertSpace(blobs: BlobStore, neededBytes: number, what: string): Promise<void> {
  const free = await blobs.freeBytes();
  if (neededBytes <= free) return;
  throw withCode('no_space', `${what} needs ${Math.ceil(neededBytes)} bytes, ${free} are free`);
}
