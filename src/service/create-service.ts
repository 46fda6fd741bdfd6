/** Joins encoder, catalog and index store into the service. */
import type { Catalog } from '../catalog/contract.ts';
import type { EncoderPool } from '../encoder/protocol/contract.ts';
import type { BlobStore } from '../index/storage/blob-store.ts';
import type { Repeats } from '../index/ask-again.ts';
import type { FollowedIndex, SearchPlans } from '../index/contract.ts';
import type { BreadthMove, RecallReport } from '../index/recall/index-recall.ts';
import { defaultIndexSettings, type IndexSettings } from '../index/index-settings.ts';
import type { NativeEngine, SegmentInfo } from '../index/engine/native.ts';
import { Admission } from './admission.ts';
import type { SearchRequest, Service } from './contract.ts';
import { createIndex } from './operations/create-index.ts';
import { deleteDocument, deleteMatching } from './operations/delete-document.ts';
import { countDocuments, getDocument, listDocuments, listIndexPage } from './operations/lists.ts';
import { contentsOfIndexes, describeIndex } from './operations/describe-index.ts';
import { countValues } from './operations/facets.ts';
import { FairQueue } from './limits/fair-queue.ts';
import { InFlight } from './in-flight.ts';
import { claimSweep, createIndexStore, type ClusterBlobs } from './indexes/store.ts';
import { Expiry } from './indexes/expiry.ts';
import { Indexes } from './indexes/indexes.ts';
import type { Limiter } from './limits/limiter.ts';
import type { OperationDeps } from './operation-deps.ts';
import { PromisedWait } from './limits/promised-wait.ts';
import { steadyNowMs } from './limits/steady-clock.ts';
import { costOf } from './limits/work.ts';
import { ReadinessProbe } from './readiness.ts';
import { queryIndex, searchIndex } from './operations/query.ts';
import { locateTokens } from './operations/locate-tokens.ts';
import { scoreDocuments } from './operations/score.ts';
import type { ModelAliases, ModelOfMoment } from './indexes/served-models.ts';
import { TokenAllowance } from './limits/token-allowance.ts';
import { updateDocument } from './operations/update-document.ts';
import { Upkeep } from './indexes/upkeep.ts';
import { upsertDocuments } from './operations/upsert.ts';
import { UsageRecorder } from './usage/usage-recorder.ts';
import { usageSummary } from './usage/usage-summary.ts';
import { VersionResolver } from './indexes/version-resolver.ts';

export interface ServiceDeps {
  readonly catalog: Catalog;
  readonly encoders: EncoderPool;
  readonly engine: NativeEngine;
  /** Where segments are kept: in a directory of this process alone, or where nodes share them. */
  readonly blobs: BlobStore | ClusterBlobs;
  readonly limiter: Limiter;
  /** API keys are hashed with it; 32 bytes. */
  readonly keyPepper: Uint8Array;
  /** The version of the moment of a model, by default of the default one. */
  readonly modelOfMoment: ModelOfMoment;
  /** Absent = none. */
  readonly modelAliases?: ModelAliases;
  /** Token vectors that one search may scan exactly; 0 = measured. */
  readonly exactTokenVectorsMax: number;
  /** Called with a failure that nobody waits for. */
  readonly onBackgroundError: (job: string, error: unknown, indexId?: string) => void;
  /** Called when the breadth of an index moves. */
  readonly onBreadth?: (indexId: string, move: BreadthMove) => void;
  readonly nowMs?: () => number;
  readonly indexSettings?: Partial<IndexSettings>;
}

export interface ServiceStatistics {
  readonly requestsInFlight: number;
  readonly openIndexes: number;
  readonly recordsLive: number;
  readonly segments: readonly SegmentInfo[];
  /** How much this node has of each open index. */
  readonly followed: readonly FollowedIndex[];
  readonly recordsVerified: number;
  readonly recordsDamaged: number;
  readonly plans: Readonly<SearchPlans>;
  readonly repeats: Readonly<Repeats>;
  /** The open indexes that have been measured. */
  readonly recalls: readonly (RecallReport & { readonly indexId: string })[];
  readonly recallTarget: number;
}

export interface RunningService extends Service {
  /** Admits no more requests (503), waits for those in flight, then closes everything below. */
  drain(): Promise<void>;
  statistics(): ServiceStatistics;
  /** Makes a round of upkeep now. Rounds also come by themselves. */
  maintain(): Promise<void>;
}

/** Long reads of the catalog at a time: one thread does them, or some of the connections to PostgreSQL. */
const ownScansMax = 1;
const sharedScansMax = 3;

/** A node may notice this late that other nodes have used up an allowance. */
const sharedLedgerAgeMsMax = 2_000;

/** Removes what a crash left behind, then serves. */
export async function createService(deps: ServiceDeps): Promise<RunningService> {
  const { catalog, onBackgroundError } = deps;
  const shared = sharedBlobs(deps);
  const parts = composed(deps);
  const { operation, admission, inFlight, store, recallTarget } = parts;
  const { indexes, allowance, versions, expiry } = operation;
  shared?.catalog.watchEpoch(() => {
    for (const kept of [admission, allowance, versions]) kept.forgetAll();
    indexes.forgetAll().catch((error: unknown) => onBackgroundError('another epoch', error));
  });
  await Promise.all([indexes.removeUnknown(), warmUp(catalog)]);
  const upkeep = new Upkeep({
    catalog,
    indexes,
    expiry,
    onError: onBackgroundError,
    ...(shared === undefined ? {} : { claimSweep: () => claimSweep(shared) }),
  });
  const drain = async (): Promise<void> => {
    admission.drain();
    // A merge may have minutes to go, so background work ends first.
    indexes.windDown();
    await Promise.all([upkeep.stop(), inFlight.idle()]);
    await indexes.close();
    await deps.encoders.close();
    await catalog.close();
    deps.engine.close();
  };
  let drained: Promise<void> | undefined;
  return {
    ...requestsOf(parts),
    drain: () => (drained ??= drain()),
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
        repeats: store.repeats,
        recalls: statistics.flatMap(({ indexId, recall }) => (recall ? { indexId, ...recall } : [])),
        recallTarget,
      };
    },
  };
}

function sharedBlobs({ blobs }: ServiceDeps): ClusterBlobs | undefined {
  return 'objects' in blobs ? blobs : undefined;
}

function composed(deps: ServiceDeps) {
  const { catalog, encoders, engine, limiter, keyPepper, onBackgroundError } = deps;
  const nowMs = deps.nowMs ?? Date.now;
  const shared = sharedBlobs(deps);
  const scanQueue = new FairQueue({ runningMax: shared === undefined ? ownScansMax : sharedScansMax });
  const settings = { ...defaultIndexSettings, nowMs, ...deps.indexSettings };
  const { threads } = engine.info;
  // One more than there are threads waits in the engine, so that no thread waits for this process.
  const engineQueue = new FairQueue({ runningMax: threads + 1, longRunningMax: Math.max(1, threads - 1) });
  const searchesWait = (): boolean => engineQueue.hasWaiting;
  const makeRoom = (tenantId: string) => indexes.makeRoom(tenantId);
  const store = createIndexStore({ ...deps, scanQueue, settings, searchesWait, makeRoom });
  const indexes: Indexes = new Indexes({
    catalog,
    store,
    memory: engine,
    nowMs: deps.nowMs ?? steadyNowMs,
    ...(shared === undefined ? {} : { shared: shared.catalog }),
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
    onUnnoted: (error) => onBackgroundError('last use of a key', error),
  });
  const draining = () => admission.draining;
  const readiness = new ReadinessProbe({ catalog, encoders, store, limiter, draining, nowMs });
  const operation: OperationDeps = {
    catalog,
    encoders,
    engine,
    indexes,
    repeats: store.repeats,
    allowance: new TokenAllowance({
      limiter,
      usageTotals: (tenantId, month) => catalog.usageTotals(tenantId, month),
      nowMs,
      ...(shared === undefined ? {} : { ageMsMax: sharedLedgerAgeMsMax }),
    }),
    usage,
    engineQueue,
    scanQueue,
    versions: new VersionResolver(catalog),
    expiry: new Expiry({ catalog, indexes, nowMs }),
    modelOfMoment: deps.modelOfMoment,
    modelAliases: deps.modelAliases ?? new Map(),
    nowMs,
  };
  return { operation, admission, readiness, inFlight, store, recallTarget: settings.recall.target };
}

/** The requests of the service, each bound to its operation. */
function requestsOf({ operation, admission, readiness }: ReturnType<typeof composed>): Service {
  const { catalog, indexes, usage } = operation;
  const searchWait = new PromisedWait(() => performance.now());
  return {
    admit: (authorization, whenFull) => admission.admit(authorization, whenFull),
    admitSession: (session, whenFull) => admission.admitSession(session, whenFull),
    openSession: (authorization) => admission.openSession(authorization),
    endSession: (session) => admission.endSession(session),
    createIndex: (context, request) => createIndex(operation, context, request),
    indexIdOf: (context, name) => indexes.idOf(context.tenant.id, name),
    listIndexes: (context) => catalog.listIndexes(context.tenant.id),
    listIndexPage: (context, page) => listIndexPage(operation, context, page),
    getIndex: async (context, indexId) => ({
      ...(await indexes.row(context.tenant.id, indexId)),
      recall: indexes.recallOf(indexId),
    }),
    updateIndex: (context, indexId, change) => indexes.update(context.tenant.id, indexId, change),
    swapIndexNames: (context, indexId, otherId) => indexes.swapNames(context.tenant.id, indexId, otherId),
    describeIndex: (context, indexId) => describeIndex(operation, context, indexId),
    contents: (context) => contentsOfIndexes(operation, context),
    deleteIndex: (context, indexId) => indexes.erase(context.tenant.id, indexId),
    upsertDocuments: (context, indexId, documents, expiry) =>
      upsertDocuments(operation, context, indexId, documents, expiry),
    deleteDocument: (context, indexId, docId) => deleteDocument(operation, context, indexId, docId),
    deleteMatching: (context, indexId, request) => deleteMatching(operation, context, indexId, request),
    listDocuments: (context, indexId, request) => listDocuments(operation, context, indexId, request),
    getDocument: (context, indexId, docId) => getDocument(operation, context, indexId, docId),
    countDocuments: (context, indexId) => countDocuments(operation, context, indexId),
    countValues: (context, indexId, request) => countValues(operation, context, indexId, request),
    updateDocument: (context, indexId, docId, change) =>
      updateDocument(operation, context, { indexId, docId, ...change }),
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
    modelNames: async () => ({
      names: await operation.encoders.modelNames(),
      defaultName: operation.modelOfMoment().name,
    }),
    usage: (context) => usageSummary(operation, context),
    usageDays: ({ tenant }, from, to) => catalog.usageDays(tenant.id, from, to),
    countRequest: (context) => usage.countRequest(context),
    countLeft: (context) => usage.countLeft(context),
    readiness: () => readiness.readiness(),
  };
}

function searchesOf(searches: readonly SearchRequest[]): {
  readonly requests: number;
  readonly work: number;
} {
  const costs = searches.map(({ query }) => costOf({ query }));
  return {
    requests: searches.length,
    work: costs.reduce((sum, { encoding, engine }) => sum + encoding + engine, 0),
  };
}

/**
 * Makes the catalog start its threads, so that the first request need not wait for that. A failure does not matter here: it
 * comes again when the thread is needed, and on a full disk the rest of the service goes on.
 */
async function warmUp(catalog: Catalog): Promise<void> {
  const noIndex = '';
  await Promise.allSettled([
    catalog.ping(),
    catalog.countStored(noIndex, []),
    catalog.loadIndexState(noIndex),
  ]);
}
