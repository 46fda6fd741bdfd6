/** An OpenTelemetry collector that takes traces by OTLP over HTTP, in JSON, and keeps them for a test to look at. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  /** 1 = internal, 2 = server. */
  readonly kind: number;
  /** Nanoseconds since the epoch. */
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Attributes of the process that made the span. */
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface TraceCollector {
  readonly url: string;
  readonly port: number;
  spans(): readonly ReceivedSpan[];
  /** All bytes that were received, with the headers. */
  received(): Buffer;
  [Symbol.asyncDispose](): Promise<void>;
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & { attributes: readonly KeyValue[] })[];
    }[];
  }[];
}

export async function startTraceCollector(port = 0): Promise<TraceCollector> {
  const bodies: Buffer[] = [];
  const headers: string[] = [];
  const server = createServer(async (request, response) => {
    headers.push(`${request.url} ${JSON.stringify(request.rawHeaders)}`);
    bodies.push(Buffer.concat(await request.toArray()));
    response.setHeader('content-type', 'application/json');
    response.end('{}');
  });
  const listening = Promise.withResolvers<void>();
  server.listen(port, '127.0.0.1', listening.resolve);
  await listening.promise;
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}/v1/traces`,
    port: address.port,
    spans: () => bodies.flatMap((body) => spansOf(JSON.parse(body.toString()) as ExportRequest)),
    received: () => Buffer.concat([Buffer.from(headers.join('\n')), ...bodies]),
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

function spansOf({ resourceSpans }: ExportRequest): readonly ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        ...span,
        attributes: recordOf(span.attributes),
        resource: recordOf(resource.attributes),
      })),
  );
}

function recordOf(pairs: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]));
}
