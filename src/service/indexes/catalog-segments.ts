/** Binds the functions of the catalog that an open index needs to one index. */
import type { Catalog } from '../../catalog/contract.ts';
import { assertInvariant } from '../../errors.ts';
import type { SegmentCatalog } from '../../index/catalog.ts';

export function catalogSegments(catalog: Catalog, indexId: string): SegmentCatalog {
  return {
    loadState: () => catalog.loadIndexState(indexId),
    async allocateSegmentId() {
      const [id] = await catalog.allocateIds(1);
      assertInvariant(id !== undefined, 'one id was asked for');
      return id;
    },
    createSegment: (segment) => catalog.createSegment({ ...segment, indexId }),
    sealSegment: (segmentId, records) => catalog.sealSegment(segmentId, records),
    commitUpsert: (upsert) => catalog.commitUpsert(upsert),
    swapSegments: (swap) => catalog.swapSegments({ ...swap, indexId }),
    readMetadata: (versionIds) => catalog.readMetadata(indexId, versionIds),
    forgetDeadVersions: (generation) => catalog.forgetDeadVersions(indexId, generation),
  };
}
