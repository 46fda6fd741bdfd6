/** The metrics listener, with `GET /metrics` alone. It has a port of its own, so that the public cannot read metrics. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Metrics } from '../../observation/metrics.ts';

/** Does not listen yet. `onError` receives the failure of a reading. */
export function createMetricsServer(metrics: Metrics, onError: (error: unknown) => void): Server {
  const server = createServer((request, response) => {
    request.resume();
    void answer(metrics, request, response).catch((error: unknown) => {
      // A failed reading must not look like a service without metrics.
      if (!response.headersSent) response.writeHead(500).end();
      onError(error);
    });
  });
  server.requestTimeout = 10_000;
  server.headersTimeout = 5_000;
  return server;
}

async function answer(metrics: Metrics, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if ((request.url ?? '').split('?', 1)[0] !== '/metrics') {
    response.writeHead(404).end();
  } else if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { allow: 'GET, HEAD' }).end();
  } else {
    const text = await metrics.render();
    response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
  }
}
