/** One index's side of the catalog that several nodes share, in the words of the index layer. */
import type { ClusterCatalog } from '../../catalog/cluster-contract.ts';
import { mergeTurnMs } from '../../index/cluster/cluster-merge.ts';
import type { ClusterIndexCatalog } from '../../index/cluster/cluster-catalog.ts';
import { catalogSegments } from './catalog-segments.ts';
import { missingIndex } from './indexes.ts';

export function clusterSegments(
  catalog: ClusterCatalog,
  indexId: string,
  nodeId: string,
): ClusterIndexCatalog {
  return {
    ...catalogSegments(catalog, indexId),
    readHead: () => existing(catalog.readHead(indexId)),
    changesSince: (node) => existing(catalog.changesSince({ indexId, ...node })),
    commitUpserts: (upserts) => catalog.commitUpserts(upserts),
    async beginMerge() {
      const lease = await catalog.acquireMergeLease(indexId, nodeId, mergeTurnMs);
      return (
        lease && {
          renew: () => catalog.renewMergeLease(lease, mergeTurnMs),
          swap: (merged) => catalog.swapMerged({ lease, ...merged }),
          release: () => catalog.releaseMergeLease(lease),
        }
      );
    },
  };
}

async function existing<T>(found: Promise<T | undefined>): Promise<T> {
  const value = await found;
  if (value === undefined) throw missingIndex();
  return value;
}
