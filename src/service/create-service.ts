/** Joins encoder, catalog and index store into the service. */
import type { Catalog } from '../catalog/contract.ts';
import type { EncoderPool } from '../encoder/protocol/contract.ts';
import type { BlobStore } from '../index/storage/blob-store.ts';
import type { FollowedIndex, SearchPlans } from '../index/contract.ts';
import { defaultIndexSettings, type IndexSettings } from '../index/index-settings.ts';
import type { NativeEngine, SegmentInfo } from '../index/engine/native.ts';
import { Admission } from './admission.ts';
import type { SearchRequest, Service } from './contract.ts';
import { createIndex } from './operations/create-index.ts';
import { deleteDocument, deleteMatching } from './operations/delete-document.ts';
import { countDocuments, getDocument, listDocuments, listIndexPage } from './operations/lists.ts';
import { describeIndex } from './operations/describe-index.ts';
import { FairQueue } from './limits/fair-queue.ts';
import { InFlight } from './in-flight.ts';
import { claimSweep, createIndexStore, type ClusterBlobs } from './indexes/store.ts';
import { Indexes } from './indexes/indexes.ts';
import type { Limiter } from './limits/limiter.ts';
import type { OperationDeps } from './operation-deps.ts';
import { PromisedWait } from './limits/promised-wait.ts';
import { steadyNowMs } from './limits/steady-clock.ts';
import { ReadinessProbe } from './readiness.ts';
import { queryIndex } from './operations/query.ts';
import { locateTokens } from './operations/locate-tokens.ts';
import { scoreDocuments } from './operations/score.ts';
import { searchIndex } from './operations/search.ts';
import type { ModelChoice } from './indexes/served-models.ts';
import { TokenAllowance } from './limits/token-allowance.ts';
import { updateMetadata } from './operations/update-metadata.ts';
import { Upkeep } from './indexes/upkeep.ts';
import { upsertDocuments } from './operations/upsert.ts';
import { UsageRecorder } from './usage/usage-recorder.ts';
import { usageSummary } from './usage/usage-summary.ts';
import { VersionResolver } from './indexes/version-resolver.ts';

export interface ServiceDeps {
  readonly catalog: Catalog;
  readonly encoders: EncoderPool;
  readonly engine: NativeEngine;
  /** Where segments lie: in a directory of this process alone, or where several nodes find them. */
  readonly blobs: BlobStore | ClusterBlobs;
  readonly limiter: Limiter;
  /** What API keys are hashed with, 32 bytes. */
  readonly keyPepper: Uint8Array;
  readonly defaultModel: ModelChoice;
  /** Token vectors one search may scan exactly; 0 = measured. */
  readonly exactTokenVectorsMax: number;
  /** A failure nobody waits for. */
  readonly onBackgroundError: (job: string, error: unknown, indexId?: string) => void;
  readonly nowMs?: () => number;
  readonly indexSettings?: Partial<IndexSettings>;
}

export interface ServiceStatistics {
  readonly requestsInFlight: number;
  readonly openIndexes: number;
  readonly recordsLive: number;
  readonly segments: readonly SegmentInfo[];
  /** What this node has of each open index. */
  readonly followed: readonly FollowedIndex[];
  readonly recordsVerified: number;
  readonly recordsDamaged: number;
  readonly plans: Readonly<SearchPlans>;
}

export interface RunningService extends Service {
  statistics(): ServiceStatistics;
  /** One round of upkeep now; it also goes on by itself. */
  maintain(): Promise<void>;
}

/** What a search costs beside its query's characters, in those. */
const queryRunCharacters = 20;

function searchesOf(requests: readonly SearchRequest[]): {
  readonly requests: number;
  readonly work: number;
} {
  const characters = requests.reduce((sum, { query }) => sum + query.length, 0);
  return { requests: requests.length, work: requests.length * queryRunCharacters + characters };
}

/** Long reads of the catalog at a time: one thread does them, or some of the connections to PostgreSQL. */
const ownScansMax = 1;
const sharedScansMax = 3;

/** How late a node may refuse early what other nodes have used up. */
const sharedLedgerAgeMsMax = 2_000;

/** Removes what a crash left behind, then serves. */
export async function createService(deps: ServiceDeps): Promise<RunningService> {
  const { catalog, encoders, engine, limiter, keyPepper, blobs, onBackgroundError } = deps;
  const nowMs = deps.nowMs ?? Date.now;
  const scanQueue = new FairQueue({ runningMax: 'objects' in blobs ? sharedScansMax : ownScansMax });
  const store = createIndexStore({
    ...deps,
    scanQueue,
    settings: { ...defaultIndexSettings, nowMs, ...deps.indexSettings },
  });
  const indexes = new Indexes({
    catalog,
    store,
    ...('objects' in blobs ? { shared: blobs.catalog } : {}),
    onRemovalError: (indexId, error) => onBackgroundError('removal of files', error, indexId),
  });
  const usage = new UsageRecorder({ catalog, limiter, nowMs });
  const inFlight = new InFlight();
  const admission = new Admission({
    catalog,
    keyPepper,
    limiter,
    usage,
    inFlight,
    nowMs,
    rateNowMs: deps.nowMs ?? steadyNowMs,
    onUncounted: (error) => onBackgroundError('usage of a refused request', error),
  });
  const readiness = new ReadinessProbe({
    catalog,
    encoders,
    store,
    limiter,
    draining: () => admission.draining,
    nowMs,
  });
  const { threads } = engine.info;
  // One waits behind those that run, so that no thread waits for this one.
  const engineQueue = new FairQueue({
    runningMax: threads + 1,
    longRunningMax: Math.max(1, threads - 1),
  });
  const searchWait = new PromisedWait(() => performance.now());
  const operation: OperationDeps = {
    catalog,
    encoders,
    engine,
    indexes,
    allowance: new TokenAllowance({
      limiter,
      usageTotals: (tenantId, month) => catalog.usageTotals(tenantId, month),
      nowMs,
      ...('objects' in blobs ? { ageMsMax: sharedLedgerAgeMsMax } : {}),
    }),
    usage,
    engineQueue,
    scanQueue,
    versions: new VersionResolver(catalog),
    defaultModel: deps.defaultModel,
    nowMs,
  };
  if ('objects' in blobs) {
    blobs.catalog.watchEpoch(() => {
      for (const kept of [admission, operation.allowance, operation.versions]) kept.forgetAll();
      indexes.forgetAll().catch((error: unknown) => onBackgroundError('another epoch', error));
    });
  }
  await Promise.all([indexes.removeUnknown(), warmUp(catalog)]);
  const upkeep = new Upkeep({
    catalog,
    indexes,
    onError: onBackgroundError,
    ...('objects' in blobs ? { claimSweep: () => claimSweep(blobs) } : {}),
  });
  let drained: Promise<void> | undefined;

  return {
    admit: (authorization) => admission.admit(authorization),
    admitSession: (session) => admission.admitSession(session),
    openSession: (authorization) => admission.openSession(authorization),
    endSession: (session) => admission.endSession(session),
    createIndex: (context, request) => createIndex(operation, context, request),
    listIndexes: (context) => catalog.listIndexes(context.tenant.id),
    listIndexPage: (context, page) => listIndexPage(operation, context, page),
    getIndex: (context, indexId) => indexes.row(context.tenant.id, indexId),
    renameIndex: (context, indexId, name) => indexes.rename(context.tenant.id, indexId, name),
    swapIndexNames: (context, indexId, otherId) => indexes.swapNames(context.tenant.id, indexId, otherId),
    describeIndex: (context, indexId) => describeIndex(operation, context, indexId),
    deleteIndex: (context, indexId) => indexes.erase(context.tenant.id, indexId),
    upsertDocuments: (context, indexId, documents) => upsertDocuments(operation, context, indexId, documents),
    deleteDocument: (context, indexId, docId) => deleteDocument(operation, context, indexId, docId),
    deleteMatching: (context, indexId, request) => deleteMatching(operation, context, indexId, request),
    listDocuments: (context, indexId, page) => listDocuments(operation, context, indexId, page),
    getDocument: (context, indexId, docId) => getDocument(operation, context, indexId, docId),
    countDocuments: (context, indexId) => countDocuments(operation, context, indexId),
    updateMetadata: (context, indexId, docId, metadata) =>
      updateMetadata(operation, context, { indexId, docId, metadata }),
    search: (context, indexId, request) =>
      searchWait.keep(context.tenant.id, searchesOf([request]), () =>
        searchIndex(operation, context, indexId, request),
      ),
    query: (context, indexId, queries) =>
      searchWait.keep(context.tenant.id, searchesOf(queries), () =>
        queryIndex(operation, context, indexId, queries),
      ),
    score: (context, request) => scoreDocuments(operation, context, request),
    locateTokens: (context, request) => locateTokens(operation, context, request),
    usage: (context) => usageSummary(operation, context),
    usageDays: ({ tenant }, from, to) => catalog.usageDays(tenant.id, from, to),
    countRequest: (context) => usage.countRequest(context),
    countLeft: (context) => usage.countLeft(context),
    readiness: () => readiness.readiness(),
    drain() {
      drained ??= drain();
      return drained;
    },
    maintain: () => upkeep.run(),
    statistics() {
      const statistics = indexes.openIndexes().map((index) => index.statistics());
      return {
        requestsInFlight: inFlight.count,
        openIndexes: statistics.length,
        recordsLive: statistics.reduce((sum, { recordsLive }) => sum + recordsLive, 0),
        segments: statistics.flatMap(({ segments }) => segments),
        followed: statistics.flatMap(({ followed }) => followed ?? []),
        ...store.verification,
        plans: store.plans,
      };
    },
  };

  async function drain(): Promise<void> {
    admission.drain();
    // A merge may have minutes to go.
    indexes.windDown();
    await Promise.all([upkeep.stop(), inFlight.idle()]);
    await indexes.close();
    await encoders.close();
    await catalog.close();
    engine.close();
  }
}

/**
 * The catalog starts its threads at their first use: the first request must not wait for that. What fails now fails
 * again when it is needed; on a full disk the rest goes on without it.
 */
async function warmUp(catalog: Catalog): Promise<void> {
  const noIndex = '';
  await Promise.allSettled([
    catalog.ping(),
    catalog.countStored(noIndex, []),
    catalog.loadIndexState(noIndex),
  ]);
}
