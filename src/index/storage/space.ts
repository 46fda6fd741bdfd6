/** Background work must not take the space that upserts need, nor begin what cannot end for want of it. */
import type { BlobStore } from './blob-store.ts';

/** Fails as a write that finds no space does. */
export async function assertSpace(blobs: BlobStore, neededBytes: number, what: string): Promise<void> {
  const free = await blobs.freeBytes();
  if (neededBytes <= free) return;
  throw Object.assign(new Error(`${what} needs ${Math.ceil(neededBytes)} bytes, ${free} are free`), {
    code: 'no_space',
  });
}
