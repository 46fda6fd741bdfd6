/** Builders of catalog rows for tests: every call makes something new, nothing is shared. */
import { randomUUID } from 'node:crypto';
import type {
  Catalog,
  CreateIndexInput,
  IndexRow,
  Tenant,
  TenantLimits,
} from '../../../src/catalog/contract.ts';
import type {
  CommitUpsertInput,
  CommitUpsertResult,
  DocumentVersion,
  NewVersion,
  UsageEvent,
} from '../../../src/contracts/document-commits.ts';

export const month = '2026-10';

export const generousLimits: TenantLimits = {
  requestsPerMinute: 60,
  maxConcurrentRequests: 2,
  inputTokens: 50_000_000n,
  documents: 100_000,
};

export function newTenant(
  catalog: Pick<Catalog, 'createTenant'>,
  limits: Partial<TenantLimits> = {},
): Promise<Tenant> {
  return catalog.createTenant({
    id: randomUUID(),
    name: `tenant ${randomUUID()}`,
    limits: { ...generousLimits, ...limits },
  });
}

export function indexInput(tenantId: string, name: string): CreateIndexInput {
  return {
    id: randomUUID(),
    tenantId,
    name,
    model: 'model',
    modelVersion: '1',
    chunking: { maxTokens: 256, overlapTokens: 32, minimumChunkTokens: 16 },
    metadataSchema: '{"type":"object"}',
    matchFields: [],
  };
}

export async function newIndex(catalog: Omit<Catalog, 'actingAs'>, tenantId: string): Promise<IndexRow> {
  const result = await catalog.createIndex(indexInput(tenantId, randomUUID()), 1000);
  if (result.outcome !== 'created') throw new Error(result.outcome);
  return result.index;
}

export async function newSegment(catalog: Omit<Catalog, 'actingAs'>, indexId: string): Promise<number> {
  const [id] = (await catalog.allocateIds(1)) as [number];
  await catalog.createSegment({ id, indexId, blob: `${indexId}/${id}.seg` });
  return id;
}

export function usageOf(tenantId: string, counters: Partial<UsageEvent> = {}): UsageEvent {
  return { tenantId, month, ...counters };
}

/** Writes documents into an index, each into the next record of the segment. */
export class DocumentWriter {
  readonly catalog: Omit<Catalog, 'actingAs'>;
  readonly index: IndexRow;
  readonly segmentId: number;
  #nextRecord = 0;

  constructor(catalog: Omit<Catalog, 'actingAs'>, index: IndexRow, segmentId: number) {
    this.catalog = catalog;
    this.index = index;
    this.segmentId = segmentId;
  }

  static async start(catalog: Omit<Catalog, 'actingAs'>, tenantId: string): Promise<DocumentWriter> {
    const index = await newIndex(catalog, tenantId);
    return new DocumentWriter(catalog, index, await newSegment(catalog, index.id));
  }

  async versions(docIds: readonly string[], metadata = '{}'): Promise<readonly DocumentVersion[]> {
    const ids = await this.catalog.allocateIds(docIds.length);
    return docIds.map((docId, place) => ({
      docId,
      versionId: ids[place] ?? 0,
      segmentId: this.segmentId,
      record: this.#nextRecord++,
      metadata,
      chunkCount: 1,
      tokenVectors: 10,
    }));
  }

  commit(
    documents: readonly NewVersion[],
    options: Partial<Pick<CommitUpsertInput, 'documentsMax' | 'usage' | 'tenantId'>> = {},
  ): Promise<CommitUpsertResult> {
    const { tenantId } = this.index;
    return this.catalog.commitUpsert({
      tenantId,
      indexId: this.index.id,
      documents,
      documentsMax: 100_000,
      usage: usageOf(options.tenantId ?? tenantId),
      ...options,
    });
  }

  /** Commits and returns the versions; throws for every other outcome. */
  async upsert(docIds: readonly string[], metadata?: string): Promise<readonly DocumentVersion[]> {
    const documents = await this.versions(docIds, metadata);
    const result = await this.commit(documents);
    if (result.outcome !== 'committed') throw new Error(result.outcome);
    return documents;
  }

  delete(docId: string, usage: Partial<UsageEvent> = {}) {
    const { tenantId, id: indexId } = this.index;
    return this.catalog.commitDelete({ tenantId, indexId, docId, usage: usageOf(tenantId, usage) });
  }
}
