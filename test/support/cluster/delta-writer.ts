/** Commits upserts in the way of nodes: each upsert has a segment of its own, a delta, which its commit names. */
import { randomUUID } from 'node:crypto';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import type {
  CommitUpsertInput,
  CommitUpsertResult,
  NewVersion,
} from '../../../src/contracts/document-commits.ts';
import type { NamedSegment } from '../../../src/contracts/index-state.ts';
import { usageOf } from '../stages/catalog-fixture.ts';

export interface Delta {
  readonly segment: NamedSegment;
  readonly documents: readonly NewVersion[];
}

/** Makes a delta. Its segment is `uploading` in the catalog from then on. */
export async function newDelta(
  catalog: ClusterCatalog,
  indexId: string,
  docIds: readonly string[],
): Promise<Delta> {
  const [id = 0, ...versionIds] = await catalog.allocateIds(docIds.length + 1);
  const blob = `${indexId}/${randomUUID()}`;
  await catalog.createSegment({ id, indexId, blob });
  const documents = docIds.map((docId, record) => ({
    docId,
    versionId: versionIds[record] ?? 0,
    segmentId: id,
    record,
    metadata: '{}',
    chunkCount: 1,
    tokenVectors: 10,
  }));
  const files = [{ ending: '', bytes: 1, sha256: '0'.repeat(64) }];
  return { segment: { id, blob, records: docIds.length, files }, documents };
}

type DeltaOptions = Partial<Pick<CommitUpsertInput, 'documentsMax' | 'usage' | 'inputTokensMax'>>;

export function deltaUpsert(
  { tenantId, id: indexId }: { readonly tenantId: string; readonly id: string },
  { segment, documents }: Delta,
  options: DeltaOptions = {},
): CommitUpsertInput {
  const usage = usageOf(tenantId);
  return { tenantId, indexId, documents, documentsMax: 1_000_000, usage, segments: [segment], ...options };
}

export function commitDelta(
  catalog: ClusterCatalog,
  index: { readonly tenantId: string; readonly id: string },
  delta: Delta,
  options: DeltaOptions = {},
): Promise<CommitUpsertResult> {
  return catalog.commitUpsert(deltaUpsert(index, delta, options));
}

/** Makes a delta and commits it. Returns the generation. Throws if the catalog does not commit it. */
export async function upsertDelta(
  catalog: ClusterCatalog,
  index: { readonly tenantId: string; readonly id: string },
  docIds: readonly string[],
): Promise<number> {
  const result = await commitDelta(catalog, index, await newDelta(catalog, index.id, docIds));
  if (result.outcome !== 'committed') throw new Error(result.outcome);
  return result.generation;
}
