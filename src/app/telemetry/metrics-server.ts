/**
 * The metrics listener: a port of its own, so that what the public reaches never exposes operating
 * figures. `GET /metrics` and nothing else.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Metrics } from '../../metrics.ts';

/** Not yet listening; the caller chooses host and port. `onError` receives why a reading failed. */
export function createMetricsServer(metrics: Metrics, onError: (error: unknown) => void): Server {
  const server = createServer((request, response) => {
    request.resume();
    void answer(metrics, request, response).catch((error: unknown) => {
      // A reading that fails must not look like a service with nothing to report.
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
