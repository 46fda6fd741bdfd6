/**
 * Removes the objects that no index needs any more: what was put and never named, and what a merge or the end of an
 * index has replaced, once nobody may go back to it. The catalog says which, so that no store is ever listed.
 */
import type { ClusterCatalog } from '../catalog/cluster-contract.ts';
import { objectEndings } from '../index/cluster/segment-objects.ts';
import type { ObjectStore } from '../index/storage/object-store.ts';

/** Rows of one round; the next round follows while there are as many. */
const rowsMax = 100;

/** Returns how many segments' objects are gone. `keptMs`: how long replaced ones are kept. */
export async function removeGarbage(
  catalog: Pick<ClusterCatalog, 'collectGarbage' | 'forgetGarbage'>,
  objects: Pick<ObjectStore, 'remove'>,
  keptMs: number,
): Promise<number> {
  for (let removed = 0; ;) {
    const garbage = await catalog.collectGarbage({ keptMs, limit: rowsMax });
    for (const { blob } of garbage) {
      await Promise.all(objectEndings.map((ending) => objects.remove(blob + ending)));
    }
    await catalog.forgetGarbage(garbage.map(({ segmentId }) => segmentId));
    removed += garbage.length;
    if (garbage.length < rowsMax) return removed;
  }
}
