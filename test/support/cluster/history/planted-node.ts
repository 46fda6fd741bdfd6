/** A fault of a node that the battery must find: it would prove nothing otherwise. */
import type { ClusterCatalog } from '../../../../src/catalog/cluster-contract.ts';
import type { IndexHead } from '../../../../src/contracts/index-state.ts';

/** A node that looks at the head now and then only, and takes it for what it has already. */
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
