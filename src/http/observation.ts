/**
 * The log line and the metrics of a request, written once it is over. Routes appear as patterns, never as addresses, because
 * a `doc_id` may be personal. Keys, texts, bodies and metadata never appear.
 */
import { whyAway } from '../away-reasons.ts';
import type { ErrorCode, ServiceError } from '../errors.ts';
import type { Logger } from '../observation/logging.ts';
import { latencyBucketsSeconds } from '../observation/metrics.ts';
import type { Metrics } from '../observation/metrics.ts';
import type { ProtocolObserver } from './protocol/protocol.ts';
import type { RequestScope } from './request-scope.ts';
import { registerTenantMetrics, type TenantRequest } from './tenant-metrics.ts';

/** Status noted for a request whose client left before the answer; never sent. */
export const clientGoneStatus = 499;
/** Route label of requests that no route matches. */
export const unmatchedRoute = 'unmatched';
/** Balancers and Kubernetes ask them every few seconds. */
const healthRoutes: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

export interface EndedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
}

export interface RequestObserver extends ProtocolObserver {
  started(): void;
  ended(scope: RequestScope, request: EndedRequest): void;
  /** An unexpected failure. The answer is `internal_error`. */
  failed(scope: { readonly requestId: string }, error: unknown): void;
  /** A `service_unavailable` with a cause. */
  unavailable(scope: { readonly requestId: string }, error: ServiceError): void;
}

export interface RequestTraces {
  /** Makes spans of an admitted request and of its stages. Returns the id of the trace if it is sampled. */
  ended(scope: RequestScope, request: EndedRequest): string | undefined;
}

export function createRequestObserver(
  logger: Logger,
  metrics: Metrics,
  traces?: RequestTraces,
  observeTenant: (request: TenantRequest) => void = registerTenantMetrics(metrics),
): RequestObserver {
  let inFlight = 0;
  metrics.registerGauge({ name: 'http_requests_in_flight', help: 'Requests in flight.' }, () => inFlight);
  const { count, connectionRefused, observeDuration, observeStage } = requestMetrics(metrics);
  return {
    started() {
      inFlight += 1;
    },
    ended(scope, request) {
      inFlight -= 1;
      const latencyMs = scope.elapsedMs();
      count(request, scope.errorCode);
      observeDuration({ route: request.route }, latencyMs / 1000);
      const timings: Record<string, number> = {};
      for (const [stage, { ms }] of scope.timings.entries()) {
        observeStage({ route: request.route, stage }, ms / 1000);
        timings[stage] = rounded(ms);
      }
      const { tenantId, context } = scope;
      if (tenantId !== undefined) {
        const seconds = latencyMs / 1000;
        // Work for a client that left goes on, and may still take tokens.
        scope.atEnd(() => observeTenant({ tenantId, status: request.status, seconds, work: context?.spent }));
      }
      // Requests without a key must not be able to fill a collector.
      const traceId = context === undefined ? undefined : traces?.ended(scope, request);
      logger[levelOf(request)](
        {
          request_id: scope.requestId,
          trace_id: traceId ?? scope.traceParent?.traceId,
          tenant_id: tenantId,
          method: request.method,
          route: request.route,
          status: request.status,
          code: scope.errorCode,
          latency_ms: rounded(latencyMs),
          timings_ms: timings,
        },
        'request',
      );
    },
    protocolError(requestId, { httpStatus: status, code, issues }) {
      // The method may be garbage, so it is no label.
      count({ method: '', route: unmatchedRoute, status }, code);
      logger.info({ request_id: requestId, status, code, reason: issues?.[0]?.code }, 'protocol error');
    },
    connectionRefused,
    failed(scope, error) {
      logger.error({ request_id: scope.requestId, err: error }, 'unexpected failure');
    },
    unavailable(scope, error) {
      const fields = { request_id: scope.requestId, err: error, reason: whyAway(error) };
      logger.warn(fields, 'unavailable');
    },
  };
}

function requestMetrics(metrics: Metrics) {
  const countRequest = metrics.counter({
    name: 'http_requests_total',
    help: 'Finished requests, by route, status (499: the client left) and error code.',
    labelNames: ['method', 'route', 'status', 'code'],
  });
  const countRejected = metrics.counter({
    name: 'http_requests_rejected_total',
    help: 'Requests that were refused (4xx), by error code.',
    labelNames: ['code'],
  });
  const countRefusedConnection = metrics.counter({
    name: 'http_connections_refused_total',
    help: 'Connections that were closed at once because there were too many.',
  });
  return {
    count: ({ method, route, status }: EndedRequest, code: ErrorCode | undefined): void => {
      countRequest({ method, route, status: String(status), code: code ?? '' });
      if (code !== undefined && status < 500) countRejected({ code });
    },
    connectionRefused: (): void => countRefusedConnection({}),
    observeDuration: metrics.histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the first header to the end of the answer, by route.',
      labelNames: ['route'],
      buckets: latencyBucketsSeconds,
    }),
    observeStage: metrics.histogram({
      name: 'http_request_stage_seconds',
      help: 'Time of one stage of a request, by route.',
      labelNames: ['route', 'stage'],
      buckets: latencyBucketsSeconds,
    }),
  };
}

function levelOf({ route, status }: EndedRequest): 'debug' | 'info' | 'warn' | 'error' {
  if (status < 400 && healthRoutes.has(route)) return 'debug';
  if (status < 500) return 'info';
  return status === 500 ? 'error' : 'warn';
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
