/** Binds the functions of a shared catalog that an open index needs to one index, and tells `events` of leases and commits. */
import type { ClusterCatalog } from '../../catalog/cluster-contract.ts';
import { mergeTurnMs } from '../../index/cluster/cluster-merge.ts';
import type { ClusterIndexCatalog } from '../../index/cluster/cluster-catalog.ts';
import type { ClusterEvents } from '../../index/cluster/cluster-events.ts';
import { catalogSegments } from './catalog-segments.ts';
import { missingIndex } from './indexes.ts';

export function clusterSegments(
  catalog: ClusterCatalog,
  indexId: string,
  nodeId: string,
  events?: Pick<ClusterEvents, 'lease' | 'committed'>,
): ClusterIndexCatalog {
  /** Tells `events` of a call that keeps the turn, or finds it lost (false). */
  const noted = async (kept: Promise<boolean>, event?: 'renewed'): Promise<boolean> => {
    const isKept = await kept;
    if (!isKept) events?.lease('lost');
    else if (event !== undefined) events?.lease(event);
    return isKept;
  };
  return {
    ...catalogSegments(catalog, indexId),
    readHead: () => existing(catalog.readHead(indexId)),
    changesSince: (node) => existing(catalog.changesSince({ indexId, ...node })),
    async commitUpserts(upserts) {
      const results = await catalog.commitUpserts(upserts);
      events?.committed(upserts.length);
      return results;
    },
    async beginMerge() {
      const lease = await catalog.acquireMergeLease(indexId, nodeId, mergeTurnMs);
      events?.lease(lease === undefined ? 'refused' : 'taken');
      return (
        lease && {
          renew: () => noted(catalog.renewMergeLease(lease, mergeTurnMs), 'renewed'),
          swap: (merged) => noted(catalog.swapMerged({ lease, ...merged })),
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
