/**
 * Keeps files of columns beside a segment that has codes. The engine writes them, and the store of the files learns of it here: a
 * node's cache counts them, and both remove what is not needed any more.
 */
import type { ColumnFiles } from '../engine/native.ts';
import { removeBlobs, type Removable } from '../storage/blob-store.ts';
import { hasCode } from '../../system-errors.ts';
import { columnsPrefix } from './derived-data.ts';

/** A `BlobStore` or a `BlobCache`. */
export interface ColumnStore extends Removable {
  /** Counts a file that was written; absent where files are not counted. */
  adopt?(name: string): Promise<void>;
}

/**
 * Resolves when the files that `save` writes are kept and surplus ones are removed. Rejects as `save` does. `isOpen`:
 * whether the segment is still there. If it went meanwhile, its columns go, too.
 */
export async function keepColumns(
  store: ColumnStore,
  { blob, isOpen }: { readonly blob: string; readonly isOpen: () => boolean },
  save: () => Promise<ColumnFiles>,
): Promise<void> {
  try {
    const { written, surplus } = await save();
    for (const ending of written) await adopt(store, blob + ending);
    for (const ending of surplus) await store.remove(blob + ending);
  } finally {
    if (!isOpen()) await removeBlobs(store, blob + columnsPrefix);
  }
}

/** The file may have been evicted, or removed as a damaged one, since it was written. */
async function adopt(store: ColumnStore, name: string): Promise<void> {
  await store.adopt?.(name).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error;
  });
}
