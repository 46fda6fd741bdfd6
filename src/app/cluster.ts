/** A node: its catalog, object store and limiter are shared with other nodes. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import path from 'node:path';
import { explained, whyAway } from '../away-reasons.ts';
import { nodeLiveMs, type ClusterCatalog } from '../catalog/cluster-contract.ts';
import { openPostgresCatalog } from '../catalog/postgres/open-catalog.ts';
import type { FollowedIndex } from '../index/contract.ts';
import { openBlobCache } from '../index/storage/local-blob-cache.ts';
import { openS3ObjectStore } from '../index/storage/s3-object-store.ts';
import { programVersion } from '../process/installation.ts';
import type { Logger } from '../observation/logging.ts';
import type { Metrics } from '../observation/metrics.ts';
import { removeGarbage } from '../service/garbage.ts';
import { nodeReport, readNodeReport } from '../service/node-report.ts';
import { RedisLimiter } from '../service/limits/redis-limiter.ts';
import type { Backend } from './backend.ts';
import { readPepper, type Config } from './config.ts';
import type { ModelReference } from './models/default-model.ts';
import { observeCluster, registerClusterState, type ClusterObserver } from './telemetry/cluster-metrics.ts';

export interface Cluster extends Backend {
  readonly catalog: ClusterCatalog;
  /** Nodes that live, this one included. */
  nodes(): number;
}

const beatMs = 2_000;
/** The models that older releases serve, of those that have another version since. Such a release reports none. */
const modelsBefore: readonly ModelReference[] = [{ name: 'bge-small-maxsim', version: '1' }];
const garbageMs = 60_000;

/** Rejects with a `ConfigError`, or with `service_unavailable` if the catalog or the object store does not answer. */
export async function joinCluster(config: Config, logger: Logger, metrics: Metrics): Promise<Cluster> {
  const observer = observeCluster(metrics);
  const keyPepper = await readPepper(config.MAXSIMD_KEY_PEPPER_FILE);
  const onError = (job: string) => (error: unknown) =>
    logger.error({ err: error, reason: whyAway(error), job }, 'cluster upkeep failed');
  await using starting = new AsyncDisposableStack();
  const catalog = starting.adopt(
    await openPostgresCatalog({
      actor: 'server',
      url: config.MAXSIMD_CATALOG_URL,
      keyPepper,
      onBackgroundFailure: onError('catalog'),
      onCall: observer.calls('catalog'),
    }),
    (opened) => opened.close(),
  );
  const objects = starting.adopt(observer.objects(openS3ObjectStore(config.MAXSIMD_BLOBS_URL)), (opened) =>
    opened.close(),
  );
  await objects.ping().catch(explain);
  const cache = await openBlobCache({
    directory: path.join(config.MAXSIMD_DATA_DIR, 'cache'),
    objects,
    bytesMax: config.MAXSIMD_CACHE_MIB * 2 ** 20,
    onError: onError('cache'),
  });
  const node = { id: randomUUID(), name: `${hostname()}:${process.pid}` };
  const version = programVersion();
  /** The models of each other node. Older releases report none. */
  let others: readonly (readonly ModelReference[] | undefined)[] = [];
  let followed: () => readonly FollowedIndex[] = () => [];
  let offered: () => readonly ModelReference[] = () => [];
  const beat = async (): Promise<void> => {
    const report = await nodeReport({ version, catalog, cache, followed: followed(), models: offered() });
    const reports = await catalog.heartbeat({ ...node, report: JSON.stringify(report) }, nodeLiveMs);
    others = reports.map((text) => readNodeReport(text)?.models);
  };
  const nodes = (): number => others.length + 1;
  const connecting = connectLimiter(config.MAXSIMD_LIMITER_URL, observer, logger, nodes);
  const limiter = starting.adopt(await connecting, (opened) => opened.close());
  // The last that can refuse the start: the others count this node from here on.
  await beat().catch(explain);
  registerClusterState(metrics, { cache, limiter, nodes });
  const replacedKeptMs = config.MAXSIMD_REPLACED_KEPT_SECONDS * 1000;
  const collectGarbage = async (): Promise<void> =>
    observer.garbageRemoved(await removeGarbage(catalog, objects, replacedKeptMs));
  const timers = [
    every(beatMs, beat, onError('heartbeat')),
    every(garbageMs, collectGarbage, onError('garbage')),
  ];
  /** Resolves when no timer's work is under way. */
  const stop = async (): Promise<void> => void (await Promise.all(timers.map((job) => job.stop())));
  starting.defer(stop);
  const shared = { catalog, objects, cache, nodeId: node.id, replacedKeptMs };
  const resources = starting.move();
  return {
    catalog,
    node: node.name,
    keyPepper,
    limiter,
    blobs: { ...shared, events: observer.events, earlierNodes: () => others.includes(undefined) },
    nodes,
    // A node that does not serve yet has none.
    othersOffer: () => others.map((models) => models ?? modelsBefore).filter((models) => models.length > 0),
    serves(service, encoders) {
      followed = () => service.statistics().followed;
      offered = () => encoders.offered();
    },
    usageWaiting: () => 0,
    async leave() {
      // A beat under way would say that this node is still there.
      await stop();
      // If this fails, the other nodes miss this one after a moment.
      await catalog.leave(node.id).catch(() => undefined);
    },
    close: () => resources.disposeAsync(),
  };
}

function explain(error: unknown): never {
  throw explained(error);
}

function connectLimiter(
  url: string,
  observer: ClusterObserver,
  logger: Logger,
  nodes: () => number,
): Promise<RedisLimiter> {
  return RedisLimiter.connect({
    url,
    nodes,
    onCall: observer.calls('limiter'),
    onChange: (isAway, cause) =>
      isAway
        ? logger.warn(
            { err: cause, reason: whyAway(cause) },
            'the limiter is away: each node admits its share of a tenant’s requests',
          )
        : logger.info('the limiter answers again'),
  });
}

/** Repeats `work`, one run at a time. */
function every(
  intervalMs: number,
  work: () => Promise<unknown>,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= work()
      .then(() => undefined, onError)
      .finally(() => {
        running = undefined;
      });
  }, intervalMs).unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
