/** The HTTP layer on the whole service, and its log lines. Tests call it by `inject()`, which needs no port. */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import { createRequestObserver } from '../../../src/http/observation.ts';
import { createHttpServer } from '../../../src/http/server.ts';
import type { HttpServerOptions } from '../../../src/http/server.ts';
import { createLogger } from '../../../src/observation/logging.ts';
import { createMetrics } from '../../../src/observation/metrics.ts';
import type { Metrics } from '../../../src/observation/metrics.ts';
import { authorization, openWatchedService, type WatchedService } from './watched-service.ts';

export interface Harness {
  readonly app: FastifyInstance;
  readonly service: WatchedService;
  readonly metrics: Metrics;
  readonly logLines: Record<string, unknown>[];
  readonly logText: () => string;
  /** Sends a request with a key. A JSON body may be given as text. */
  inject(options: InjectOptions): Promise<LightMyRequestResponse>;
  /** Creates an index and returns its id. */
  createIndex(): Promise<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startHttp(options: Partial<HttpServerOptions> = {}): Promise<Harness> {
  const service = await openWatchedService();
  const metrics = createMetrics();
  const lines: string[] = [];
  const logLines: Record<string, unknown>[] = [];
  const logger = createLogger({
    level: 'debug',
    destination: {
      write(line) {
        lines.push(line);
        logLines.push(JSON.parse(line) as Record<string, unknown>);
      },
    },
  });
  const app = await createHttpServer({
    service,
    observer: createRequestObserver(logger, metrics),
    ...options,
  });
  const harness: Harness = {
    app,
    service,
    metrics,
    logLines,
    logText: () => lines.join(''),
    inject: (request) =>
      app.inject({
        ...request,
        headers: {
          authorization,
          ...(typeof request.payload === 'string' ? { 'content-type': 'application/json' } : {}),
          ...request.headers,
        },
      }),
    async createIndex() {
      const response = await harness.inject({
        method: 'POST',
        url: '/v1/indexes',
        payload: { name: randomUUID() },
      });
      return response.json<{ id: string }>().id;
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
  return harness;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Parses the bytes of a response: status, headers (lower case) and body. */
export function parseResponse(raw: string): RawResponse {
  const end = raw.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = raw.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body: raw.slice(end + 4) };
}

/** Resolves once `condition` holds; looks again at every turn of the event loop. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
