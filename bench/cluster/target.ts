/** A tenant with one index, and commits into it. */
import { randomUUID } from 'node:crypto';
import type { Catalog } from '../../src/catalog/contract.ts';
import type { NamedSegment } from '../../src/contracts/index-state.ts';

export const month = '2026-10';

export interface Target {
  readonly tenantId: string;
  readonly indexId: string;
  readonly segmentId: number;
  record: number;
}

export async function newTarget(catalog: Catalog): Promise<Target> {
  const tenantId = randomUUID();
  const limits = {
    requestsPerMinute: 60,
    maxConcurrentRequests: 2,
    inputTokens: 2n ** 50n,
    documents: 2 ** 40,
  };
  await catalog.createTenant({ id: tenantId, name: 'cluster', limits });
  const indexId = randomUUID();
  const index = { id: indexId, tenantId, name: indexId, model: 'model', modelVersion: '1' };
  const chunking = { maxTokens: 256, overlapTokens: 32, minimumChunkTokens: 16 };
  await catalog.createIndex({ ...index, chunking, metadataSchema: '{"type":"object"}' }, 100);
  const [segmentId = 0] = await catalog.allocateIds(1);
  await catalog.createSegment({ id: segmentId, indexId, blob: `${indexId}/${segmentId}` });
  return { tenantId, indexId, segmentId, record: 0 };
}

export async function commit(
  catalog: Catalog,
  target: Target,
  documents: number,
  segments?: readonly NamedSegment[],
): Promise<void> {
  const { tenantId, indexId, segmentId } = target;
  const ids = await catalog.allocateIds(documents);
  const result = await catalog.commitUpsert({
    tenantId,
    indexId,
    documents: ids.map((versionId) => ({
      docId: `document ${versionId}`,
      versionId,
      segmentId,
      record: target.record++,
      metadata: '{"category":"a","year":2026}',
      chunkCount: 1,
      tokenVectors: 64,
    })),
    documentsMax: 2 ** 40,
    usage: { tenantId, month, requests: 1, documentUpserts: documents, inputTokens: 100n },
    inputTokensMax: 2n ** 50n,
    ...(segments && { segments }),
  });
  if (result.outcome !== 'committed') throw new Error(result.outcome);
}

export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
