/**
 * `maxsimd mcp`: the indexes of a service as tools for agents, by the Model Context Protocol (revision 2025-11-25).
 *
 * Over stdio the process has the key of its user. Over HTTP it has no key and no session: each request brings a key as its
 * bearer token, and the service checks it. A refused call becomes a result with `isError`, which has the service's message.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { fetchFor } from '../../../clients/typescript/src/connection.ts';
import { clientOf, type Endpoint } from '../client.ts';
import { toolServer, type Tools } from './tools.ts';

/** Time for attempts of a call while the service is away. Limits are reported at once, and the agent decides. */
const retryMsMax = 10_000;
const connectionsMax = 256;
const path = '/mcp';

export async function serveStdio(endpoint: Endpoint, tools: Tools, input: NodeJS.ReadStream): Promise<void> {
  const client = clientOf(endpoint, retryMsMax, { waitsForLimits: false });
  await toolServer(client, tools).connect(new StdioServerTransport(input));
}

export interface HttpOptions {
  readonly service: Omit<Endpoint, 'key'>;
  readonly tools: Tools;
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly origins: readonly string[];
  readonly interruption: AbortSignal;
  readonly onListening: (url: string) => void;
}

/** Serves until the interruption. */
export async function serveHttp(options: HttpOptions): Promise<void> {
  const { host, port, interruption, onListening } = options;
  const send = fetchFor(options.service.url);
  const server = createServer((request, response) => {
    answer(request, response, options, send).catch(() => response.destroy());
  });
  server.maxConnections = connectionsMax;
  server.listen(port, host);
  await once(server, 'listening');
  const { address, family, port: bound } = server.address() as AddressInfo;
  onListening(`http://${family === 'IPv6' ? `[${address}]` : address}:${bound}${path}`);
  if (!interruption.aborted) await once(interruption, 'abort');
  server.close();
  await once(server, 'close');
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { service, tools, origins }: HttpOptions,
  send: typeof fetch,
): Promise<void> {
  const { origin, authorization } = request.headers;
  // A page of another host may have this one's address (DNS rebinding). Browsers name the page, programs name none.
  if (origin !== undefined && !origins.includes(origin))
    return refuse(response, 403, `the origin ${origin} is not allowed (--allow-origin)`);
  if (new URL(request.url ?? '', 'http://host').pathname !== path)
    return refuse(response, 404, `the address is ${path}`);
  // Without sessions there is no stream to get and nothing to delete.
  if (request.method !== 'POST') return refuse(response, 405, 'the method is POST', { allow: 'POST' });
  const key = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1];
  if (key === undefined)
    return refuse(response, 401, 'an API key is needed: Authorization: Bearer KEY', {
      'www-authenticate': 'Bearer',
    });
  const client = clientOf({ ...service, key }, retryMsMax, { waitsForLimits: false, fetch: send });
  const server = toolServer(client, tools);
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  // Ends the calls of a caller who has gone.
  response.once('close', () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

function refuse(
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close', ...headers });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null }));
}
