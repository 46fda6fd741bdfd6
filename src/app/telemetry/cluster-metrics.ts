/** Metrics of a node: calls to the shared services, and how far it is behind the other nodes. */
import { observed, type CallObserver } from '../../observation/call-observer.ts';
import { ServiceError } from '../../errors.ts';
import type { ClusterEvents } from '../../index/cluster/cluster-events.ts';
import type { BlobCache } from '../../index/storage/blob-cache.ts';
import type { ObjectStore } from '../../index/storage/object-store.ts';
import type { Metrics } from '../../observation/metrics.ts';
import type { Limiter } from '../../service/limits/limiter.ts';
import { hasCode } from '../../system-errors.ts';

export interface ClusterObserver {
  readonly events: ClusterEvents;
  calls(service: 'catalog' | 'objects' | 'limiter'): CallObserver;
  objects(store: ObjectStore): ObjectStore;
  garbageRemoved(segments: number): void;
}

/** These are read at each scrape. */
export interface ClusterState {
  readonly cache: Pick<BlobCache, 'statistics'>;
  readonly limiter: Required<Pick<Limiter, 'isAway'>>;
  nodes(): number;
}

/** Coarser than for requests, because each operation has a series. */
const callBucketsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];
const commitBuckets = [0, 1, 2, 5, 10, 50, 100, 500, 1_000, 10_000];
const groupBuckets = [1, 2, 3, 5, 10, 20, 50];
const catchUpBucketsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 300];

export function observeCluster(metrics: Metrics): ClusterObserver {
  const call = metrics.histogram({
    name: 'cluster_call_seconds',
    help: 'Time of calls to the shared services `catalog` (by statement, waits for a connection included), `objects` (by kind, retries included) and `limiter` (by script).',
    labelNames: ['service', 'operation'],
    buckets: callBucketsSeconds,
  });
  const failure = metrics.counter({
    name: 'cluster_call_failures_total',
    help: 'Calls to shared services that failed or got a wrong answer.',
    labelNames: ['service', 'operation'],
  });
  const bytes = metrics.counter({
    name: 'cluster_object_bytes_total',
    help: 'Bytes of objects that were stored (`put`) and fetched (`get`).',
    labelNames: ['direction'],
  });
  const behind = metrics.histogram({
    name: 'cluster_commits_behind',
    help: 'Commits by which an open index was behind when a search looked at the catalog.',
    buckets: commitBuckets,
  });
  const catchUp = metrics.histogram({
    name: 'cluster_catch_up_seconds',
    help: 'Time to catch up with the catalog, with everything that a search must wait for: while an index is `opened`, or when an open one `follows`.',
    labelNames: ['kind'],
    buckets: catchUpBucketsSeconds,
  });
  const lease = metrics.counter({
    name: 'cluster_merge_leases_total',
    help: 'Leases to merge an index: `taken`, `refused` because another node has it, `renewed`, or `lost`.',
    labelNames: ['event'],
  });
  const group = metrics.histogram({
    name: 'cluster_commit_upserts',
    help: 'Upserts that shared a transaction.',
    buckets: groupBuckets,
  });
  const garbage = metrics.counter({
    name: 'cluster_garbage_removed_total',
    help: 'Segments whose objects were removed because no index needs them.',
  });
  const calls: ClusterObserver['calls'] =
    (service) =>
    ({ operation, seconds, failed }) => {
      call({ service, operation }, seconds);
      if (failed) failure({ service, operation });
    };
  return {
    events: {
      looked: (commits) => behind({}, commits),
      caughtUp: (seconds, isFirst) => catchUp({ kind: isFirst ? 'opened' : 'follows' }, seconds),
      lease: (event) => lease({ event }),
      committed: (upserts) => group({}, upserts),
    },
    calls,
    objects: (store) => observedObjects(store, calls('objects'), bytes),
    garbageRemoved: (segments) => garbage({}, segments),
  };
}

export function registerClusterState(metrics: Metrics, state: ClusterState): void {
  const gauge = (name: string, help: string, read: () => number): void =>
    metrics.registerGauge({ name, help }, read);
  gauge('cluster_nodes', 'Live nodes that this node knows.', () => state.nodes());
  gauge('cluster_limiter_fallback', '1 while Redis is away and this node admits its share.', () =>
    Number(state.limiter.isAway),
  );
  gauge('cluster_cache_files', 'Local copies of objects.', () => state.cache.statistics.files);
  metrics.registerGauge(
    {
      name: 'cluster_cache_bytes',
      help: 'Bytes of local copies (`held`), and the `bound` from MAXSIMD_CACHE_MIB.',
      labelNames: ['kind'],
    },
    () => {
      const { bytes, bytesMax } = state.cache.statistics;
      return [
        { labels: { kind: 'held' }, value: bytes },
        { labels: { kind: 'bound' }, value: bytesMax },
      ];
    },
  );
  metrics.registerCounter(
    {
      name: 'cluster_cache_lookups_total',
      help: 'Objects that an index needed: the cache had them (`hit`) or not (`miss`).',
      labelNames: ['outcome'],
    },
    () => {
      const { hits, misses } = state.cache.statistics;
      return [
        { labels: { outcome: 'hit' }, value: hits },
        { labels: { outcome: 'miss' }, value: misses },
      ];
    },
  );
  metrics.registerCounter(
    {
      name: 'cluster_cache_evictions_total',
      help: 'Local copies that were removed because the cache was full.',
    },
    () => state.cache.statistics.evictions,
  );
}

function observedObjects(
  store: ObjectStore,
  observe: CallObserver,
  bytes: (labels: { readonly direction: 'put' | 'get' }, count: number) => void,
): ObjectStore {
  const call = <T>(operation: string, work: () => Promise<T>): Promise<T> =>
    observed(observe, operation, work, isFailureOfStore);
  return {
    async putFile(key, path) {
      const sent = await call('put', () => store.putFile(key, path));
      bytes({ direction: 'put' }, sent.bytes);
      return sent;
    },
    async getFile(key, path, expected) {
      await call('get', () => store.getFile(key, path, expected));
      bytes({ direction: 'get' }, expected.bytes);
    },
    async readPart(key, first, count) {
      const part = await call('get-part', () => store.readPart(key, first, count));
      bytes({ direction: 'get' }, part.length);
      return part;
    },
    remove: (key) => call('remove', () => store.remove(key)),
    ping: () => call('ping', () => store.ping()),
    close: () => store.close(),
  };
}

/** Failures of the local file system are not the store's. */
function isFailureOfStore(error: unknown): boolean {
  return error instanceof ServiceError || hasCode(error, 'corrupt', 'ENOENT');
}
