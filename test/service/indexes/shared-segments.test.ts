/** The events that an operator sees of turns to merge and of commits. */
import { expect, it } from 'vitest';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import { sharedSegments } from '../../../src/service/indexes/catalog-segments.ts';

it('reports turns that are taken, refused, renewed and lost, and upserts that share a transaction', async () => {
  const reported: string[] = [];
  let isHeld = true;
  const catalog: Partial<ClusterCatalog> = {
    acquireMergeLease: (indexId) => Promise.resolve(isHeld ? { indexId, fence: 1, epoch: 'e' } : undefined),
    renewMergeLease: () => Promise.resolve(isHeld),
    swapMerged: () => Promise.resolve(isHeld),
    commitUpserts: () => Promise.resolve([]),
  };
  const index = sharedSegments(catalog as ClusterCatalog, 'an-index', 'a-node', {
    lease: (event) => reported.push(event),
    committed: (upserts) => reported.push(`${upserts} upserts`),
  });
  const merged = { removedSegmentIds: [] };
  const turn = await index.beginMerge();
  expect([await turn?.renew(), await turn?.swap(merged)]).toEqual([true, true]);
  isHeld = false;
  expect([await turn?.renew(), await turn?.swap(merged)]).toEqual([false, false]);
  expect(await index.beginMerge()).toBeUndefined();
  await index.commitUpserts([]);
  expect(reported).toEqual(['taken', 'renewed', 'lost', 'lost', 'refused', '0 upserts']);
});
