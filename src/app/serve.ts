/**
 * Composes the running service: data directory, catalog, segments, engine, encoders and listeners. One JSON line on standard
 * output says that it is ready. SIGTERM, SIGINT or SIGHUP drains it, and it exits with 0. A start that fails closes all it has
 * opened and throws an error whose message is one line for a person.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { adminServer, listenForOperators, type AdminServer } from './admin.ts';
import { prepareDataDirectory } from '../catalog/data-directory.ts';
import type { Catalog } from '../catalog/contract.ts';
import { openDataDirectory, type Backend } from './backend.ts';
import { apiThreadsOf, ConfigError, isClustered, modelFoldersOf, type Config } from './config.ts';
import { findInstalled, installedModels } from '../encoder/model/installed-models.ts';
import { followDefaultModel } from './models/default-model.ts';
import { addressLines, greetFirstTenant } from './first-tenant.ts';
import { lastAnswersMs, openFront, type Front } from './front/front.ts';
import { openThreadedFront } from './front/threaded-front.ts';
import { readConsolePage } from '../http/console/page.ts';
import { createRequestObserver, type RequestObserver } from '../http/observation.ts';
import type { TlsIdentity } from '../http/protocol/listener.ts';
import { registerTenantMetrics } from '../http/tenant-metrics.ts';
import { unlessAsked } from '../process/end-signals.ts';
import { createEngine, type NativeEngine } from '../index/engine/native.ts';
import { consoleDirectory } from '../process/installation.ts';
import { engineDeviceOf, watchEngineDevice } from './engine-device.ts';
import { createLogger, type Logger } from '../observation/logging.ts';
import { isLoopback } from '../loopback.ts';
import { createMetrics, type Metrics } from '../observation/metrics.ts';
import { checkPorts, listenAt, listenForMetrics } from './ports.ts';
import { createMetricsServer } from './telemetry/metrics-server.ts';
import { engineMemoryBytes } from './memory.ts';
import { aliasesOf, choiceOf, newestInstalled } from './models/model-choice.ts';
import type { EncoderModel } from '../encoder/protocol/contract.ts';
import { EncoderStartFailure } from '../encoder/supervision/supervisor.ts';
import { createService, type RunningService } from '../service/create-service.ts';
import { defaultModel, type ModelOfMoment } from '../service/indexes/served-models.ts';
import { defaultRecallSettings, type RecallSettings } from '../index/recall/measuring.ts';
import { registerServiceMetrics } from './telemetry/service-metrics.ts';
import { onShutdown } from './shutdown.ts';
import { startEncoders, type Encoders } from './encoders.ts';
import { followTlsFiles, readTlsFiles, renewIdentity } from './tls-files.ts';
import { collectYoungBuffers } from '../process/process-tuning.ts';

/** How long files and child processes may take to close after the drain. Then the process ends by force. */
const closeMs = 4_000;

export interface Life {
  readonly asked: AbortSignal;
  /** Variables that are ignored because Kubernetes set them. */
  readonly ignored: readonly string[];
}

/** The parts of a start. If the start fails, `opened` is closed in reverse order. */
interface Start {
  readonly config: Config;
  readonly asked: AbortSignal;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly opened: AsyncDisposableStack;
}

/** Resolves when the service is ready; the process then lives until it is asked to end. If asked earlier, it undoes the start. */
export async function serve(config: Config, life: Life): Promise<void> {
  try {
    await start(config, life);
  } catch (error) {
    if (!life.asked.aborted) throw error;
    process.stderr.write(`maxsimd: asked to end by ${String(life.asked.reason)} before it was ready\n`);
    process.exit(0);
  }
}

async function start(config: Config, { asked, ignored }: Life): Promise<void> {
  collectYoungBuffers();
  const tls = await readTlsFiles(config);
  assertSafeListeners(config);
  await checkPorts(config);
  const logger = createLogger({ level: config.MAXSIMD_LOG_LEVEL });
  if (ignored.length > 0) logger.warn({ variables: ignored }, 'ignored: Kubernetes sets them for Services');
  await using opened = new AsyncDisposableStack();
  const state: Start = { config, asked, logger, metrics: createMetrics(), opened };
  const running = await openService(state);
  const listeners = await openListeners(state, running, tls);

  await warnOfMissingModels(config, running.backend.catalog, logger);
  const model = await untilServed(state, running);
  const url = await listen(config, listeners);
  endWhenAsked(state, running, listeners);

  const { kernel, threads } = running.engine.info;
  const device = running.engine.device()?.name;
  logger.info({ url, model: model.name, model_version: model.version, kernel, threads, device }, 'ready');
  process.stdout.write(await greeting(config, running.backend, url));
  process.stdout.write(
    `${JSON.stringify({ event: 'ready', url, model: model.name, model_version: model.version })}\n`,
  );
  opened.move();
}

interface Running {
  readonly backend: Backend;
  readonly engine: NativeEngine;
  readonly encoders: Encoders;
  readonly service: RunningService;
  readonly modelOfMoment: ModelOfMoment;
}

async function openService({ config, asked, logger, metrics, opened }: Start): Promise<Running> {
  await prepareDataDirectory(config.MAXSIMD_DATA_DIR);
  const backend = opened.adopt(
    await (isClustered(config)
      ? unlessAsked(asked, joinCluster(config, logger, metrics))
      : openDataDirectory(config, logger)),
    async (joined) => {
      await joined.leave();
      await joined.close();
    },
  );
  asked.throwIfAborted();
  const engine = opened.adopt(
    createEngine({
      threads: config.MAXSIMD_ENGINE_THREADS,
      kernel: 'auto',
      memoryBytes: engineMemoryBytes(config),
      ...engineDeviceOf(config),
    }),
    (created) => created.close(),
  );
  // Encoders take longest to start. The rest goes on beside them.
  const encoders = opened.adopt(await startEncoders(config, logger, backend.catalog), (started) =>
    started.close(),
  );
  const modelOfMoment = followDefaultModel({
    choice: choiceOf(config),
    own: () => encoders.offered(),
    others: () => backend.othersOffer(),
    installed: (await newestInstalled(config))?.version,
    logger,
  });
  const service = await createService({
    ...backend,
    encoders: encoders.pool,
    engine,
    modelOfMoment,
    modelAliases: aliasesOf(config),
    exactTokenVectorsMax: config.exactTokenVectorsMax,
    indexSettings: {
      segmentTokenVectorsMax: config.segmentTokenVectorsMax,
      recall: recallSettingsOf(config),
    },
    onBreadth: (indexId, { from, to, at10, comparisons, target }) =>
      logger.info(
        { index_id: indexId, breadth: to, was: from, recall_at_10: at10, searches: comparisons, target },
        to > from
          ? 'searches of the index look at more: their measured recall is below the target'
          : 'searches of the index look at less: their measured recall is above the target',
      ),
    onBackgroundError: (job, error, indexId) =>
      logger.error({ err: error, job, index_id: indexId }, 'background work failed'),
  });
  opened.defer(() => service.drain());
  backend.serves(service, encoders);
  opened.defer(watchEngineDevice(engine, logger));
  registerServiceMetrics(metrics, { service, backend, engine, encoders });
  return { backend, engine, encoders, service, modelOfMoment };
}

function recallSettingsOf({ MAXSIMD_RECALL_TARGET: target, measuresAll }: Config): RecallSettings {
  const all = measuresAll ? { share: 1, shareOfNew: 1, load: Infinity } : {};
  return { ...defaultRecallSettings, target, ...all };
}

interface Listeners {
  readonly front: Front;
  readonly admin: AdminServer | undefined;
  readonly metricsServer: ReturnType<typeof createMetricsServer>;
  readonly draining: AbortController;
}

async function openListeners(
  state: Start,
  running: Running,
  tls: TlsIdentity | undefined,
): Promise<Listeners> {
  const { config, logger, metrics, opened } = state;
  const { front, observer } = await frontOf(state, running, tls);
  opened.defer(() => front.close());
  const draining = new AbortController();
  const admin = opened.adopt(
    await adminServer(config, running.backend, {
      observer,
      memoryBytesOf: (tenantId) =>
        running.engine.memoryOwners().find(({ owner }) => owner === tenantId)?.takenBytes ?? 0,
      drain: draining.signal,
      trustProxy: config.MAXSIMD_TRUST_PROXY,
      ...(tls === undefined ? {} : { tls }),
      ...(config.MAXSIMD_CONSOLE ? { page: await readConsolePage(consoleDirectory()) } : {}),
    }),
    (app) => app?.close(),
  );
  if (tls !== undefined) {
    const use = (identity: TlsIdentity): void => {
      front.renewIdentity(identity);
      if (admin !== undefined) renewIdentity(admin.server, identity);
    };
    opened.use(followTlsFiles(config, { current: tls, use, logger }));
  }
  const metricsServer = createMetricsServer(metrics, (error) =>
    logger.error({ err: error }, 'metrics could not be read'),
  );
  opened.defer(() => closeNow(metricsServer));
  return { front, admin, metricsServer, draining };
}

/** The API, in this thread or in threads of its own, and the observer of this thread. */
async function frontOf(
  { config, logger, metrics }: Start,
  { service, backend, engine }: Running,
  tls: TlsIdentity | undefined,
): Promise<{ readonly front: Front; readonly observer: RequestObserver }> {
  const threads = apiThreadsOf(config);
  const parts = { config, metrics, service, node: backend.node, tls, threads };
  const observeTenant = registerTenantMetrics(metrics, () => engine.memoryOwners());
  if (threads === 1) {
    const front = await openFront({ ...parts, logger, observeTenant });
    return { front, observer: front.observer };
  }
  const front = await openThreadedFront({ ...parts, observeTenant });
  return { front, observer: createRequestObserver(logger, metrics, undefined, observeTenant) };
}

/** The default model, once an encoder serves it. */
async function untilServed({ config, asked }: Start, running: Running): Promise<EncoderModel> {
  const { encoders, modelOfMoment } = running;
  await unlessAsked(asked, encoders.ready).catch((error: unknown) => {
    throw error instanceof EncoderStartFailure
      ? new ConfigError(
          `the model ${config.MAXSIMD_MODEL[0]} cannot be served (MAXSIMD_PROVIDER=${config.MAXSIMD_PROVIDER}): ${error.reason}`,
        )
      : error;
  });
  // If an encoder goes away just now, its replacement is waited for, as during a request.
  return defaultModel(encoders.pool, modelOfMoment, { deadlineMs: Infinity, signal: asked });
}

/** Returns the address of the API. */
async function listen(config: Config, { front, admin, metricsServer }: Listeners): Promise<string> {
  const { MAXSIMD_HTTP_HOST: host, MAXSIMD_HTTP_PORT: port } = config;
  const address = await listenAt({ name: 'MAXSIMD_HTTP', host, port }, () => front.listen({ host, port }));
  await listenForOperators(admin, config);
  await listenForMetrics(metricsServer, config);
  return address;
}

/** SIGTERM waits for requests in flight, as long as an upsert may take. */
function endWhenAsked({ config, asked, logger }: Start, running: Running, listeners: Listeners): void {
  const { front, admin, metricsServer, draining } = listeners;
  const drainMs = config.MAXSIMD_TIMEOUT_UPSERT_MS;
  const onError = (error: unknown): void => logger.fatal({ err: error }, 'shutting down after a defect');
  onShutdown({ asked, drainMs, closeMs, onError }, async () => {
    logger.info('draining');
    draining.abort();
    front.drain();
    await running.backend.leave();
    // A request that is not done by then loses its connection, which ends its work. Commits under way complete.
    const cut = setTimeout(() => front.cut(), drainMs);
    await running.service.drain();
    clearTimeout(cut);
    // Node also waits for connections without a request. They end with the process.
    await Promise.all([front.close(), Promise.race([admin?.close(), pause(lastAnswersMs)])]);
    await closeNow(metricsServer);
    await running.encoders.close();
    await running.backend.close();
    logger.info('closed');
  });
}

/** `maxsimd tenant create` makes the tenants of several nodes. Programs read the address in the line that follows. */
async function greeting(config: Config, { catalog, keyPepper }: Backend, url: string): Promise<string> {
  const { MAXSIMD_DATA_DIR: directory, MAXSIMD_CONSOLE: hasConsole } = config;
  const terminal = process.stdout.isTTY;
  const first = isClustered(config)
    ? undefined
    : await greetFirstTenant(catalog, { pepper: keyPepper, url, hasConsole, directory, terminal });
  return first ?? (terminal ? `\n${addressLines({ url, hasConsole })}\n` : '');
}

/** Loads the clients of shared services only if they are needed. */
async function joinCluster(config: Config, logger: Logger, metrics: Metrics): Promise<Backend> {
  const cluster = await import('./cluster.ts');
  return cluster.joinCluster(config, logger, metrics);
}

/** Warns of indexes whose model is not installed, before their searches fail. */
async function warnOfMissingModels(config: Config, catalog: Catalog, logger: Logger): Promise<void> {
  // The models of encoders elsewhere are not known here.
  if (config.MAXSIMD_ENCODERS.length > 0) return;
  const { models, flat } = await installedModels(modelFoldersOf(config));
  for (const { model, modelVersion, indexes } of await catalog.listModelVersions()) {
    if (findInstalled(models, { name: model, version: modelVersion }) !== undefined) continue;
    logger.warn(
      { model, model_version: modelVersion, indexes },
      'the model version of these indexes is not installed: their searches and upserts are answered 503',
    );
  }
  for (const directory of flat) {
    logger.warn({ directory }, 'not installed as a model: run maxsimd models add');
  }
}

/** API keys must not cross a network in the clear by accident. Metrics must not be open to a network by accident. */
function assertSafeListeners(config: Config): void {
  const {
    MAXSIMD_TLS_FILES: tlsFiles,
    MAXSIMD_ALLOW_PLAIN: plain,
    MAXSIMD_METRICS_HOST: metricsHost,
  } = config;
  const mayBePlain = tlsFiles.length > 0 || plain.includes('http');
  const hasAdmin = config.MAXSIMD_ADMIN_PORT !== -1;
  for (const name of ['MAXSIMD_HTTP_HOST', ...(hasAdmin ? (['MAXSIMD_ADMIN_HOST'] as const) : [])] as const) {
    if (mayBePlain || isLoopback(config[name])) continue;
    throw new ConfigError(
      `${name}: ${config[name]} is not a loopback address; set MAXSIMD_TLS_FILES, or MAXSIMD_ALLOW_PLAIN=http behind a proxy that speaks TLS`,
    );
  }
  const hasMetrics = config.MAXSIMD_METRICS_PORT !== -1;
  if (hasMetrics && !isLoopback(metricsHost) && !plain.includes('metrics')) {
    throw new ConfigError(
      `MAXSIMD_METRICS_HOST: ${metricsHost} is not a loopback address, and metrics have neither TLS nor keys; set MAXSIMD_ALLOW_PLAIN=metrics in a network of your own`,
    );
  }
}

async function closeNow(server: ReturnType<typeof createMetricsServer>): Promise<void> {
  const closed = Promise.withResolvers<void>();
  // An error means only that it was not listening.
  server.close(() => closed.resolve());
  server.closeAllConnections();
  await closed.promise;
}
