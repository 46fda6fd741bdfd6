/**
 * Removes the objects that no index needs any more: those that were put and never named, and those that a merge or a deleted
 * index has left. The catalog says which may go by now, so that the object store is never listed.
 */
import type { ClusterCatalog } from '../catalog/cluster-contract.ts';
import { objectEndings } from '../index/cluster/segment-objects.ts';
import type { ObjectStore } from '../index/storage/object-store.ts';

/** Rows of one round. A full round is followed by the next. */
const rowsMax = 100;

/** Resolves to the number of segments whose objects were removed. `keptMs`: how long replaced objects are kept. */
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
