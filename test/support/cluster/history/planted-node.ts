/** A planted fault of a node. The battery must find it, or it would prove nothing. */
import type { ClusterCatalog } from '../../../../src/catalog/cluster-contract.ts';
import type { IndexHead } from '../../../../src/contracts/index-state.ts';

/** The node reads the head only at every fourth search. Otherwise it takes the state that it has for the newest. */
export function withoutHeads(real: ClusterCatalog): ClusterCatalog {
  const known = new Map<string, IndexHead>();
  let reads = 0;
  const staleHead = (indexId: string): IndexHead | undefined => {
    reads += 1;
    return reads % 4 === 0 ? undefined : known.get(indexId);
  };
  return {
    ...real,
    async changesSince(input) {
      const changes = await real.changesSince(input);
      if (typeof changes === 'object') known.set(input.indexId, changes);
      return changes;
    },
    async readHead(indexId) {
      return staleHead(indexId) ?? (await real.readHead(indexId));
    },
  };
}
