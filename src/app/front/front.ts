/** The listener of the API as the composition sees it, in the thread that calls or in threads of its own. */
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { whyAway } from '../../away-reasons.ts';
import { readConsolePage } from '../../http/console/page.ts';
import { createRequestObserver, type RequestObserver } from '../../http/observation.ts';
import type { TlsIdentity } from '../../http/protocol/listener.ts';
import { createHttpServer, type HttpServerOptions } from '../../http/server.ts';
import type { TenantRequest } from '../../http/tenant-metrics.ts';
import { consoleDirectory, programVersion } from '../../process/installation.ts';
import type { Logger } from '../../observation/logging.ts';
import type { Metrics } from '../../observation/metrics.ts';
import type { Config } from '../config.ts';
import { renewIdentity } from '../tls-files.ts';
import { countTraceSpans } from '../telemetry/service-metrics.ts';
import type { Traces } from '../telemetry/traces.ts';

/** Below the 4,096 descriptors that some systems allow. */
const connectionsMax = 4_000;
/** How long the last refusals may take to be sent, once the work in flight is done. */
export const lastAnswersMs = 500;

export interface ListenPlace {
  readonly host: string;
  readonly port: number;
  /** Other listeners of the process share the port. */
  readonly reusePort?: boolean;
}

export interface Front {
  /** Returns the address. */
  listen(place: ListenPlace): Promise<string>;
  /** New connections use this identity. */
  renewIdentity(identity: TlsIdentity): void;
  /** New requests get 503. */
  drain(): void;
  /** Ends all connections, and with them the work of their requests. */
  cut(): void;
  close(): Promise<void>;
}

export interface FrontOptions extends Pick<
  HttpServerOptions,
  'service' | 'room' | 'activity' | 'beat' | 'openConnections'
> {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly node: string | undefined;
  readonly tls: TlsIdentity | undefined;
  /** Threads that serve the API, this one included. */
  readonly threads: number;
  /** Absent = the tenants are counted in `metrics`. */
  readonly observeTenant?: (request: TenantRequest) => void;
}

/** Serves the API in this thread. */
export async function openFront(
  options: FrontOptions,
): Promise<Front & { readonly observer: RequestObserver }> {
  const { config, logger, metrics, node, tls, observeTenant, service, ...shared } = options;
  const traces = await tracesOf(options);
  const observer = createRequestObserver(logger, metrics, traces, observeTenant);
  const draining = new AbortController();
  const http = await createHttpServer({
    ...shared,
    service,
    observer,
    drain: draining.signal,
    trustProxy: config.MAXSIMD_TRUST_PROXY,
    ...(tls === undefined ? {} : { tls }),
    ...(config.MAXSIMD_CONSOLE ? { console: await readConsolePage(consoleDirectory()) } : {}),
    ...(node === undefined ? {} : { node }),
    connectionsMax,
    timeouts: {
      searchMs: config.MAXSIMD_TIMEOUT_SEARCH_MS,
      upsertMs: config.MAXSIMD_TIMEOUT_UPSERT_MS,
      keepAliveMs: config.MAXSIMD_HTTP_KEEP_ALIVE_MS,
    },
  });
  return {
    observer,
    async listen(place) {
      const address = await http.listen({ ...place });
      // Fastify did not make the listener, and takes it for a plain one.
      return tls === undefined ? address : address.replace(/^http:/, 'https:');
    },
    renewIdentity: (identity) => renewIdentity(http.server, identity),
    drain: () => draining.abort(),
    cut: () => http.server.closeAllConnections(),
    async close() {
      // Node also waits for connections without a request. They end with the process.
      await Promise.race([http.close(), pause(lastAnswersMs)]);
      await traces?.close();
    },
  };
}

/** Loads the packages of traces only if they are needed. */
async function tracesOf({ config, logger, metrics, threads }: FrontOptions): Promise<Traces | undefined> {
  const countSpans = countTraceSpans(metrics);
  const { MAXSIMD_TRACES_URL: url, OTEL_TRACES_SAMPLER_ARG: share } = config;
  if (url === '') return undefined;
  const { startTraces } = await import('../telemetry/traces.ts');
  return startTraces({
    url,
    share,
    threads,
    version: programVersion(),
    instance: `${hostname()}:${process.pid}`,
    onSpans: (outcome, spans) => countSpans({ outcome }, spans),
    onChange: (isAway, cause) =>
      isAway
        ? logger.warn(
            { err: cause, reason: whyAway(cause) },
            'the trace collector is away: spans are dropped',
          )
        : logger.info('the trace collector takes spans again'),
  });
}
