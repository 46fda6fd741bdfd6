/** The service with the real catalog, engine and files. Tests can delay its encoder. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { generateApiKey, hashApiKey } from '../../../src/catalog/api-key.ts';
import type { Tenant, TenantLimits } from '../../../src/catalog/contract.ts';
import { openCatalog, type SqliteCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import type { IndexSettings } from '../../../src/index/index-settings.ts';
import { openLocalBlobStore } from '../../../src/index/storage/local-blob-store.ts';
import { createEngine, type NativeEngine } from '../../../src/index/engine/native.ts';
import type {
  DocumentInput,
  RankedResponse,
  RequestContext,
  SearchRequest,
  UpsertResponse,
} from '../../../src/service/contract.ts';
import { createService, type RunningService } from '../../../src/service/create-service.ts';
import { MemoryLimiter } from '../../../src/service/limits/memory-limiter.ts';
import { StageTimings } from '../../../src/service/stage-timings.ts';
import { WordEncoder } from '../encoder/word-encoder.ts';

export interface TenantStage {
  readonly tenant: Tenant;
  readonly apiKey: string;
  /** A request of this tenant. */
  readonly context: (overrides?: Partial<RequestContext>) => RequestContext;
  readonly createIndex: () => Promise<string>;
  readonly upsert: (indexId: string, texts: Readonly<Record<string, string>>) => Promise<UpsertResponse>;
  readonly search: (indexId: string, query: string, more?: Partial<SearchRequest>) => Promise<RankedResponse>;
}

export interface ServiceStage {
  readonly directory: string;
  readonly service: RunningService;
  readonly catalog: SqliteCatalog;
  readonly engine: NativeEngine;
  readonly encoder: WordEncoder;
  readonly clock: { ms: number };
  readonly errors: unknown[];
  newTenant(limits?: Partial<TenantLimits>): Promise<TenantStage>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a service in a fresh directory, or in one that an earlier service left. */
export async function openServiceStage(
  existing?: string,
  indexSettings: Partial<IndexSettings> = {},
  {
    exactTokenVectorsMax = 0,
    engine = createEngine({ threads: 2, kernel: 'auto' }),
    encoder = new WordEncoder(),
    nowMs,
  }: {
    readonly exactTokenVectorsMax?: number;
    readonly engine?: NativeEngine;
    /** New indexes have the first model that it serves now. */
    readonly encoder?: WordEncoder;
    /** The present time. Absent = the stage's `clock`, which stands still until a test moves it. */
    readonly nowMs?: () => number;
  } = {},
): Promise<ServiceStage> {
  const directory = existing ?? (await mkdtemp(path.join(tmpdir(), 'maxsimd-service-')));
  const catalog = await openCatalog({ directory });
  const model = encoder.served[0]!.name;
  const clock = { ms: Date.now() };
  const errors: unknown[] = [];
  const service = await createService({
    catalog,
    encoders: encoder,
    engine,
    blobs: await openLocalBlobStore(path.join(directory, 'segments')),
    limiter: await MemoryLimiter.restore(catalog, clock.ms),
    keyPepper: catalog.keyPepper(),
    modelOfMoment: (name = model) => ({ name }),
    exactTokenVectorsMax,
    indexSettings,
    onBackgroundError: (_job, error) => void errors.push(error),
    nowMs: nowMs ?? (() => clock.ms),
  });
  return {
    directory,
    service,
    catalog,
    engine,
    encoder,
    clock,
    errors,
    async newTenant(limits = {}) {
      const { id: keyId, apiKey } = generateApiKey();
      const tenant = await catalog.createTenant({
        id: randomUUID(),
        name: `tenant ${randomUUID()}`,
        limits: {
          requestsPerMinute: 1000,
          maxConcurrentRequests: 100,
          inputTokens: 1_000_000_000n,
          documents: 1000,
          ...limits,
        },
        key: { id: keyId, hash: hashApiKey(apiKey, catalog.keyPepper()) },
      });
      const context = (overrides: Partial<RequestContext> = {}): RequestContext => ({
        ...contextOf(tenant, clock.ms),
        ...overrides,
      });
      return {
        tenant,
        apiKey,
        context,
        createIndex: async () =>
          (await service.createIndex(context(), { name: randomUUID(), metadataSchema: '{}' })).id,
        upsert: (indexId, texts) => service.upsertDocuments(context(), indexId, documentsOf(texts)),
        search: (indexId, query, more = {}) =>
          service.search(context(), indexId, { query, returnComponents: false, ...more }),
      };
    },
    async [Symbol.asyncDispose]() {
      await service.drain();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The context of a new request of a tenant. */
export function contextOf(tenant: Tenant, nowMs: number): RequestContext {
  return {
    requestId: randomUUID(),
    tenant,
    signal: new AbortController().signal,
    deadlineMs: nowMs + 60_000,
    startedAtMs: nowMs,
    timings: new StageTimings(),
    spent: { inputTokens: 0, documents: 0 },
  };
}

export function documentsOf(
  texts: Readonly<Record<string, string>>,
  metadata = '{}',
): readonly DocumentInput[] {
  return Object.entries(texts).map(([docId, text]) => ({ docId, text, metadata }));
}

/** The error that a promise is rejected with. */
export async function rejection(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}
