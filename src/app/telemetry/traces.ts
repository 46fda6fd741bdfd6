/**
 * The one importer of OpenTelemetry. It makes the spans of a request once the request is over, from the times of its stages,
 * and sends them by OTLP over HTTP. A span has the fields of the request's log line, never texts, keys or metadata.
 *
 * Memory is bounded. Spans without room are counted as dropped, like batches that the collector does not take.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import type { Attributes, Context } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type SpanExporter,
} from '@opentelemetry/sdk-trace';
import type { EndedRequest, RequestTraces } from '../../http/observation.ts';
import type { TraceParent } from '../../http/protocol/trace-parent.ts';
import type { RequestScope } from '../../http/request-scope.ts';

export interface TracesOptions {
  readonly url: string;
  /** Share of requests to trace, 0 to 1. A caller may decide for its own requests. */
  readonly share: number;
  /** Threads with traces. Each holds its part of the spans that may wait. */
  readonly threads: number;
  readonly version: string;
  readonly instance: string;
  onSpans(outcome: 'sent' | 'dropped', spans: number): void;
  /** The collector takes no spans, because of `cause`, or takes them again. */
  onChange(isAway: boolean, cause?: unknown): void;
}

export interface Traces extends RequestTraces {
  /** Sends the spans that wait, within a second. */
  close(): Promise<void>;
}

/** They take some 8 MiB. */
const waitingSpansMax = 4_096;
const sendEveryMs = 1_000;
const lastSpansMs = 1_000;

export function startTraces(options: TracesOptions): Traces {
  const spansMax = Math.ceil(waitingSpansMax / options.threads);
  let waiting = 0;
  let isAway = false;
  const exporter = new OTLPTraceExporter({ url: options.url });
  const observed: SpanExporter = {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.error !== undefined;
        waiting -= spans.length;
        options.onSpans(failed ? 'dropped' : 'sent', spans.length);
        if (failed !== isAway) options.onChange(failed, result.error);
        isAway = failed;
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({
        'service.name': 'maxsimd',
        'service.version': options.version,
        'service.instance.id': options.instance,
      }),
    ),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.share) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: observed,
        maxQueueSize: spansMax,
        scheduledDelayMillis: sendEveryMs,
      }),
    ],
  });
  const tracer = provider.getTracer('maxsimd', options.version);

  return {
    ended(scope, request) {
      // Stages use the clock of `performance.now()`.
      const epochMs = scope.startedAtMs - scope.startedAt;
      const root = tracer.startSpan(
        `${request.method} ${request.route}`,
        { kind: SpanKind.SERVER, startTime: scope.startedAtMs, attributes: attributesOf(scope, request) },
        callerContext(scope.traceParent),
      );
      if (!root.isRecording()) return undefined;
      if (request.status >= 500) root.setStatus({ code: SpanStatusCode.ERROR });
      const { traceId } = root.spanContext();
      const rootContext = trace.setSpan(ROOT_CONTEXT, root);
      const stages = new Map(scope.timings.entries());
      if (waiting + 1 + stages.size > spansMax) {
        options.onSpans('dropped', 1 + stages.size);
        return traceId;
      }
      waiting += 1 + stages.size;
      const contexts = new Map<string, Context>();
      const contextOf = (name: string | undefined): Context => {
        const stage = name === undefined ? undefined : stages.get(name);
        // The client left, and the stage around this one has not ended.
        if (name === undefined || stage === undefined) return rootContext;
        const known = contexts.get(name);
        if (known !== undefined) return known;
        const startTime = epochMs + stage.startedAt;
        const span = tracer.startSpan(name, { startTime }, contextOf(stage.within));
        span.end(startTime + stage.ms);
        const context = trace.setSpan(ROOT_CONTEXT, span);
        contexts.set(name, context);
        return context;
      };
      for (const name of stages.keys()) contextOf(name);
      root.end(scope.startedAtMs + scope.elapsedMs());
      return traceId;
    },
    async close() {
      await Promise.race([provider.shutdown().catch(() => undefined), pause(lastSpansMs)]);
    },
  };
}

function callerContext(parent: TraceParent | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, isSampled } = parent;
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

/** Attributes of the semantic conventions for HTTP servers, and ours. */
function attributesOf(scope: RequestScope, { method, route, status }: EndedRequest): Attributes {
  return {
    'http.request.method': method,
    'http.route': route,
    'http.response.status_code': status,
    ...(scope.errorCode === undefined ? {} : { 'error.type': scope.errorCode }),
    'maxsimd.request_id': scope.requestId,
    ...(scope.context === undefined ? {} : { 'maxsimd.tenant_id': scope.context.tenant.id }),
  };
}
