import type { BlobStore } from './blob-store.ts';

/** Removes every blob whose name starts with `prefix`: a segment with its sidecars, or a whole index. */
export async function removeBlobs(blobs: BlobStore, prefix: string): Promise<void> {
  for (const { name } of await blobs.list(prefix)) await blobs.remove(name);
}
