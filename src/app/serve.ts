/**
 * Composes the running service: data directory, catalog, segments, engine, encoders, HTTP and metrics
 * listeners. Ready is one JSON line on standard output; SIGTERM or SIGINT drains and exits 0. What fails on
 * the way up is undone and thrown, as one line fit to print.
 */
import { hostname, totalmem } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { whyAway } from '../away-reasons.ts';
import { adminServer, listenForOperators } from './admin.ts';
import { prepareDataDirectory } from '../catalog/data-directory.ts';
import type { Catalog } from '../catalog/contract.ts';
import { openDataDirectory, type Backend } from './backend.ts';
import { ConfigError, isClustered, modelFoldersOf, type Config } from './config.ts';
import { findInstalled, installedModels } from '../encoder/model/installed-models.ts';
import { greetFirstTenant } from './first-tenant.ts';
import { readConsolePage } from '../http/console/page.ts';
import { createRequestObserver } from '../http/observation.ts';
import { createHttpServer } from '../http/server.ts';
import { unlessAsked } from '../end-signals.ts';
import { createEngine } from '../index/engine/native.ts';
import { consoleDirectory, programVersion } from '../installation.ts';
import { engineDeviceOf, watchEngineDevice } from './engine-device.ts';
import { createLogger, type Logger } from '../logging.ts';
import { isLoopback } from '../loopback.ts';
import { createMetrics, type Metrics } from '../metrics.ts';
import { checkPorts, listenAt, listenForMetrics } from './ports.ts';
import { createMetricsServer } from './telemetry/metrics-server.ts';
import { choiceOf } from './model-choice.ts';
import { EncoderStartFailure } from '../encoder/supervision/supervisor.ts';
import { createService } from '../service/create-service.ts';
import { defaultModel } from '../service/indexes/served-models.ts';
import { countTraceSpans, registerServiceMetrics } from './telemetry/service-metrics.ts';
import type { Traces } from './telemetry/traces.ts';
import { onShutdown } from './shutdown.ts';
import { startEncoders } from './encoders.ts';
import { followTlsFiles, readTlsFiles } from './tls-files.ts';
import { collectYoungBuffers } from '../young-buffers.ts';

/** Below the 4,096 descriptors that some systems allow. */
const connectionsMax = 4_000;
/** Beyond the drain, until the process is ended by force: closing files and child processes. */
const closeMs = 4_000;
/** For the last refusals on their way, once the work in flight is done. */
const lastAnswersMs = 500;

export interface Life {
  /** Aborted when the process is asked to end. */
  readonly asked: AbortSignal;
  /** Variables that are ignored because Kubernetes set them. */
  readonly ignored: readonly string[];
}

/**
 * Resolves when the service is ready; from then on the process lives until it is asked to end. Asked before, it undoes what
 * it has opened, and ends.
 */
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
  const directory = config.MAXSIMD_DATA_DIR;
  // Closed in reverse order, here when the start fails and at shutdown otherwise.
  await using starting = new AsyncDisposableStack();

  const metrics = createMetrics();
  await prepareDataDirectory(directory);
  const backend = starting.adopt(
    await (isClustered(config)
      ? unlessAsked(asked, joinCluster(config, logger, metrics))
      : openDataDirectory(config, logger)),
    async (opened) => {
      await opened.leave();
      await opened.close();
    },
  );
  asked.throwIfAborted();
  const { catalog } = backend;
  const engine = starting.adopt(
    createEngine({
      threads: config.MAXSIMD_ENGINE_THREADS,
      kernel: 'auto',
      memoryBytes: engineMemoryBytes(config),
      ...engineDeviceOf(config),
    }),
    (opened) => opened.close(),
  );
  // The slowest part goes on beside the rest.
  const encoders = starting.adopt(await startEncoders(config, logger), (started) => started.close());
  const service = await createService({
    ...backend,
    encoders: encoders.pool,
    engine,
    defaultModel: choiceOf(config),
    exactTokenVectorsMax: config.exactTokenVectorsMax,
    indexSettings: { segmentTokenVectorsMax: config.segmentTokenVectorsMax },
    onBackgroundError: (job, error, indexId) =>
      logger.error({ err: error, job, index_id: indexId }, 'background work failed'),
  });
  starting.defer(() => service.drain());
  backend.serves(service);

  starting.defer(watchEngineDevice(engine, logger));
  registerServiceMetrics(metrics, { service, backend, engine, encoders });
  const traces = await tracesOf(config, logger, metrics);
  const draining = new AbortController();
  const listener = {
    observer: createRequestObserver(logger, metrics, traces),
    drain: draining.signal,
    trustProxy: config.MAXSIMD_TRUST_PROXY,
    ...(tls === undefined ? {} : { tls }),
  };
  const http = starting.adopt(
    await createHttpServer({
      ...listener,
      service,
      ...(config.MAXSIMD_CONSOLE ? { console: await readConsolePage(consoleDirectory()) } : {}),
      connectionsMax,
      timeouts: {
        searchMs: config.MAXSIMD_TIMEOUT_SEARCH_MS,
        upsertMs: config.MAXSIMD_TIMEOUT_UPSERT_MS,
        keepAliveMs: config.MAXSIMD_HTTP_KEEP_ALIVE_MS,
      },
    }),
    (app) => app.close(),
  );
  const admin = starting.adopt(await adminServer(config, backend, listener), (app) => app?.close());
  if (tls !== undefined) {
    const servers = [http.server, ...(admin === undefined ? [] : [admin.server])];
    starting.use(followTlsFiles(config, { current: tls, servers, logger }));
  }
  const metricsServer = createMetricsServer(metrics, (error) =>
    logger.error({ err: error }, 'metrics could not be read'),
  );
  starting.defer(() => closeNow(metricsServer));

  await tellMissingModels(config, catalog, logger);
  await unlessAsked(asked, encoders.ready).catch((error: unknown) => {
    throw error instanceof EncoderStartFailure
      ? new ConfigError(`the model ${config.MAXSIMD_MODEL} cannot be served: ${error.reason}`)
      : error;
  });
  const model = await defaultModel(encoders.pool, choiceOf(config), {
    // The encoders are ready: one that goes away just now is waited for like during a request.
    deadlineMs: Infinity,
    signal: asked,
  });
  const { MAXSIMD_HTTP_HOST: host, MAXSIMD_HTTP_PORT: port } = config;
  const address = await listenAt({ name: 'MAXSIMD_HTTP', host, port }, () => http.listen({ host, port }));
  // Fastify, which did not make the listener, takes it for a plain one.
  const url = tls === undefined ? address : address.replace(/^http:/, 'https:');
  await listenForOperators(admin, config);
  await listenForMetrics(metricsServer, config);
  onShutdown(
    {
      asked,
      drainMs: config.MAXSIMD_TIMEOUT_UPSERT_MS,
      closeMs,
      onError: (error) => logger.fatal({ err: error }, 'shutting down after a defect'),
    },
    async () => {
      logger.info('draining');
      draining.abort();
      await backend.leave();
      // Whoever is not done by then loses its connection, which ends its work; commits under way complete.
      const cut = setTimeout(() => http.server.closeAllConnections(), config.MAXSIMD_TIMEOUT_UPSERT_MS);
      await service.drain();
      clearTimeout(cut);
      // Node waits for connections on which no request has come, too: they end with the process.
      await Promise.race([Promise.all([http.close(), admin?.close()]), pause(lastAnswersMs)]);
      await closeNow(metricsServer);
      await traces?.close();
      await encoders.close();
      await backend.close();
      logger.info('closed');
    },
  );

  const { kernel, threads } = engine.info;
  const device = engine.device()?.name;
  logger.info({ url, model: model.name, model_version: model.version, kernel, threads, device }, 'ready');
  // Tenants of several nodes are made once, by `maxsimd tenant create`.
  const greeting = isClustered(config)
    ? undefined
    : await greetFirstTenant(catalog, {
        pepper: backend.keyPepper,
        url,
        directory,
        terminal: process.stdout.isTTY,
      });
  if (greeting !== undefined) process.stdout.write(greeting);
  process.stdout.write(
    `${JSON.stringify({ event: 'ready', url, model: model.name, model_version: model.version })}\n`,
  );
  starting.move();
}

/** Its packages are loaded by those who want traces alone. */
async function tracesOf(config: Config, logger: Logger, metrics: Metrics): Promise<Traces | undefined> {
  const countSpans = countTraceSpans(metrics);
  const { MAXSIMD_TRACES_URL: url, MAXSIMD_TRACES_SHARE: share } = config;
  if (url === '') return undefined;
  const { startTraces } = await import('./telemetry/traces.ts');
  return startTraces({
    url,
    share,
    version: programVersion(),
    instance: `${hostname()}:${process.pid}`,
    onSpans: (outcome, spans) => countSpans({ outcome }, spans),
    onChange: (isAway, cause) =>
      isAway
        ? logger.warn(
            { err: cause, reason: whyAway(cause) },
            'the trace collector is away: spans are dropped',
          )
        : logger.info('the trace collector takes spans'),
  });
}

/** Its clients of other services are loaded by those who need them alone. */
async function joinCluster(config: Config, logger: Logger, metrics: Metrics): Promise<Backend> {
  const cluster = await import('./cluster.ts');
  return cluster.joinCluster(config, logger, metrics);
}

/** Indexes whose model is not installed are seen here, before their searches fail. */
async function tellMissingModels(config: Config, catalog: Catalog, logger: Logger): Promise<void> {
  // What encoders elsewhere have is not known here.
  if (config.MAXSIMD_ENCODERS.length > 0) return;
  const { models, flat } = await installedModels(modelFoldersOf(config));
  for (const { model, modelVersion, indexes } of await catalog.listModelVersions()) {
    if (findInstalled(models, { name: model, version: modelVersion }) !== undefined) continue;
    logger.warn(
      { model, model_version: modelVersion, indexes },
      'indexes have a model version that is not installed: their searches and upserts are 503',
    );
  }
  for (const directory of flat) {
    logger.warn({ directory }, 'not a model yet: install it with maxsimd models add');
  }
}

/** Keys must not cross a network in the clear by accident, nor operating figures be open to it. */
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

/** Encoders take 60% at most. */
const engineMemoryShare = 1 / 3;

function engineMemoryBytes({ MAXSIMD_MEMORY_MIB: mebibytes }: Config): number {
  if (mebibytes > 0) return mebibytes * 2 ** 20;
  // Undefined or beyond the machine where nothing constrains the process.
  return Math.floor(Math.min(process.constrainedMemory() || Infinity, totalmem()) * engineMemoryShare);
}

async function closeNow(server: ReturnType<typeof createMetricsServer>): Promise<void> {
  const closed = Promise.withResolvers<void>();
  // An error says that it was not listening.
  server.close(() => closed.resolve());
  server.closeAllConnections();
  await closed.promise;
}
