/**
 * A `Service` in memory for the tests of the HTTP layer: it answers plausible data, remembers what it was
 * asked, and can be asked to fail or to wait. The real service has its own tests.
 */
import { randomUUID } from 'node:crypto';
import type { IndexRow, Tenant } from '../../../src/catalog/contract.ts';
import { ServiceError } from '../../../src/errors.ts';
import type {
  AdmittedRequest,
  DocumentInput,
  RankedResponse,
  RequestContext,
  Service,
} from '../../../src/service/contract.ts';

const apiKey = 'qkv_live_test';
export const authorization = `Bearer ${apiKey}`;
export const memorySession = 'a session';

const tenant: Tenant = {
  id: 'tenant-1',
  name: 'Test',
  suspended: false,
  limits: { requestsPerMinute: 60, maxConcurrentRequests: 2, inputTokens: 50_000_000n, documents: 100_000 },
  createdAtMs: 0,
};

export interface Call {
  readonly name: string;
  readonly context: RequestContext;
  readonly arguments: readonly unknown[];
}

export interface MemoryService extends Service {
  readonly calls: Call[];
  readonly counted: RequestContext[];
  /** Requests whose callers left. */
  readonly left: RequestContext[];
  access: AdmittedRequest['access'];
  permitsHeld: number;
  /** Replaces the next outcomes of `admit`. */
  admitFailure: unknown;
  /** Runs before every operation: may throw or wait. */
  before: (context: RequestContext, name: string) => Promise<void> | void;
  /** What `search` and `score` return instead of one result per document. */
  ranked: RankedResponse | undefined;
  ready: boolean;
  countFailure: unknown;
}

export function createMemoryService(): MemoryService {
  const indexes = new Map<string, IndexRow>();
  const stored = new Map<string, Map<string, DocumentInput>>();
  const usage = (documents: number, chunks: number, candidates: number) => ({
    inputTokens: 7,
    documentCount: documents,
    chunkCount: chunks,
    candidateCount: candidates,
    latencyMs: 1.25,
  });
  const enter = async (name: string, context: RequestContext, ...given: unknown[]): Promise<void> => {
    service.calls.push({ name, context, arguments: given });
    await service.before(context, name);
    context.timings.note(name, { startedAt: performance.now(), ms: 0.5 });
  };
  const find = (indexId: string): IndexRow => {
    const index = indexes.get(indexId);
    if (index === undefined) throw new ServiceError('not_found', 'no such index');
    return index;
  };
  const findDocument = (indexId: string, docId: string): DocumentInput => {
    const document = stored.get(find(indexId).id)?.get(docId);
    if (document === undefined) throw new ServiceError('not_found', 'no such document');
    return document;
  };
  const storedDocument = ({ docId, metadata }: DocumentInput) => ({ docId, metadata, chunkCount: 1 });
  const ranked = (documents: readonly { docId: string; metadata: string }[]): RankedResponse => ({
    results: documents.map(({ docId, metadata }, at) => ({
      docId,
      chunkId: `transient_${at}`,
      chunkIndex: 0,
      score: 1 / (at + 1),
      metadata,
    })),
    usage: usage(0, documents.length, documents.length),
  });

  const service: MemoryService = {
    calls: [],
    counted: [],
    left: [],
    access: 'full',
    permitsHeld: 0,
    admitFailure: undefined,
    before: () => {},
    ranked: undefined,
    ready: true,
    countFailure: undefined,

    async admit(header) {
      if (service.admitFailure !== undefined) throw service.admitFailure;
      if (header !== authorization) throw new ServiceError('authentication_failed', 'unknown API key');
      service.permitsHeld += 1;
      let held = true;
      return {
        tenant,
        access: service.access,
        rate: { limit: 60, remaining: 59, resetSeconds: 59.2 },
        permit: {
          release() {
            if (held) service.permitsHeld -= 1;
            held = false;
          },
        },
      };
    },
    async admitSession(session) {
      return service.admit(session === memorySession ? authorization : undefined);
    },
    async openSession(header) {
      if (header !== authorization) throw new ServiceError('authentication_failed', 'unknown API key');
      return memorySession;
    },
    async endSession() {},
    async describeIndex(context, indexId) {
      await enter('describeIndex', context, indexId);
      return { documents: stored.get(find(indexId).id)?.size ?? 0, segments: [] };
    },
    async contents(context) {
      await enter('contents', context);
      return [...stored].map(([id, documents]) => ({
        id,
        documents: documents.size,
        chunks: documents.size,
      }));
    },
    async locateTokens(context, request) {
      await enter('locateTokens', context, request);
      return { query: [[0, request.query.length]], document: undefined };
    },
    async createIndex(context, request) {
      await enter('createIndex', context, request);
      const index: IndexRow = {
        id: randomUUID(),
        tenantId: tenant.id,
        name: request.name,
        model: request.model ?? 'test-model',
        modelVersion: '1',
        chunking: {
          maxTokens: request.chunking?.maxTokens ?? 256,
          overlapTokens: request.chunking?.overlapTokens ?? 32,
          minimumChunkTokens: request.chunking?.minimumChunkTokens ?? 16,
        },
        metadataSchema: request.metadataSchema,
        status: 'ready',
        createdAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
      };
      indexes.set(index.id, index);
      stored.set(index.id, new Map());
      return index;
    },
    async listIndexes(context) {
      await enter('listIndexes', context);
      return [...indexes.values()];
    },
    async listIndexPage(context, page) {
      await enter('listIndexPage', context, page);
      const from = [...indexes.values()].findIndex(({ id }) => id === page.after?.id) + 1;
      const after = [...indexes.values()].slice(from);
      return { indexes: after.slice(0, page.limit), hasMore: after.length > page.limit };
    },
    async renameIndex(context, indexId, name) {
      await enter('renameIndex', context, indexId, name);
      indexes.set(indexId, { ...find(indexId), name });
      return find(indexId);
    },
    async swapIndexNames(context, indexId, otherId) {
      await enter('swapIndexNames', context, indexId, otherId);
      const [one, other] = [find(indexId), find(otherId)];
      indexes.set(indexId, { ...one, name: other.name });
      indexes.set(otherId, { ...other, name: one.name });
      return find(indexId);
    },
    async getIndex(context, indexId) {
      await enter('getIndex', context, indexId);
      return find(indexId);
    },
    async deleteIndex(context, indexId) {
      await enter('deleteIndex', context, indexId);
      return indexes.delete(indexId);
    },
    async upsertDocuments(context, indexId, documents) {
      await enter('upsertDocuments', context, indexId, documents);
      const index = find(indexId);
      for (const document of documents) stored.get(index.id)?.set(document.docId, document);
      return {
        indexId,
        upsertedDocuments: documents.length,
        upsertedChunks: documents.length,
        failed: [],
        unknownTokens: [],
        usage: usage(documents.length, documents.length, 0),
      };
    },
    async deleteDocument(context, indexId, docId) {
      await enter('deleteDocument', context, indexId, docId);
      return stored.get(find(indexId).id)?.delete(docId) ?? false;
    },
    async deleteMatching(context, indexId, request) {
      await enter('deleteMatching', context, indexId, request);
      find(indexId);
      return { deleted: 0, more: false };
    },
    async listDocuments(context, indexId, page) {
      await enter('listDocuments', context, indexId, page);
      const after = [...(stored.get(find(indexId).id)?.values() ?? [])]
        .map(storedDocument)
        .toSorted((one, other) => Buffer.compare(Buffer.from(one.docId), Buffer.from(other.docId)))
        .filter(({ docId }) => page.after === undefined || docId > page.after);
      return { documents: after.slice(0, page.limit), hasMore: after.length > page.limit };
    },
    async getDocument(context, indexId, docId) {
      await enter('getDocument', context, indexId, docId);
      return storedDocument(findDocument(indexId, docId));
    },
    async countDocuments(context, indexId) {
      await enter('countDocuments', context, indexId);
      const { size } = stored.get(find(indexId).id) ?? new Map();
      return { documents: size, chunks: size };
    },
    async countValues(context, indexId, request) {
      await enter('countValues', context, indexId, request);
      const { size } = stored.get(find(indexId).id) ?? new Map();
      const facets = request.fields.map((field) => ({
        field,
        distinct: 2,
        values: [
          { value: '"insect"', count: 2 },
          { value: '1e400', count: 1 },
        ],
      }));
      return { documents: size, facets };
    },
    async updateDocument(context, indexId, docId, change) {
      await enter('updateDocument', context, indexId, docId, change);
      const { metadata = '{}' } = change;
      stored.get(indexId)?.set(docId, { ...findDocument(indexId, docId), metadata });
      return storedDocument(findDocument(indexId, docId));
    },
    async search(context, indexId, request) {
      await enter('search', context, indexId, request);
      const documents = [...(stored.get(find(indexId).id)?.values() ?? [])];
      return service.ranked ?? ranked(documents);
    },
    async query(context, indexId, queries) {
      await enter('query', context, indexId, queries);
      const documents = [...(stored.get(find(indexId).id)?.values() ?? [])];
      const answer = service.ranked ?? ranked(documents);
      const documentsOf = ({ results }: RankedResponse) =>
        results.map((result) => ({ docId: result.docId, metadata: result.metadata, chunks: [result] }));
      return {
        results: queries.map(({ groupByDocument }) =>
          groupByDocument ? { documents: documentsOf(answer), usage: answer.usage } : answer,
        ),
        usage: answer.usage,
      };
    },
    async score(context, request) {
      await enter('score', context, request);
      return service.ranked ?? ranked(request.documents);
    },
    async usageDays(context, from, to) {
      await enter('usageDays', context, from, to);
      return [];
    },
    async usage(context) {
      await enter('usage', context);
      return {
        periodStartMs: Date.UTC(2026, 0, 1),
        periodEndMs: Date.UTC(2026, 1, 1),
        usage: {
          inputTokens: 2n ** 60n,
          requests: 1,
          documentUpserts: 2,
          searches: 3,
          scores: 4,
          documents: 5,
        },
        limits: {
          inputTokens: 2n ** 61n,
          documents: 100_000,
          requestsPerMinute: 60,
          maxConcurrentRequests: 2,
        },
        remaining: { inputTokens: 2n ** 60n, documents: 99_995 },
        tenant: 'acme',
      };
    },
    async countLeft(context) {
      service.left.push(context);
    },
    async countRequest(context) {
      if (service.countFailure !== undefined) throw service.countFailure;
      service.counted.push(context);
    },
    async readiness() {
      const encoder = service.ready ? 'ok' : 'no encoder is up';
      return { ready: service.ready, checks: { catalog: 'ok', encoder, disk: 'ok', draining: 'ok' } };
    },
  };
  return service;
}
