/**
 * `maxsimd mcp`: the indexes of a service as tools for agents, by the Model Context Protocol (revision 2025-11-25).
 *
 * Over stdio the process has the key of its user. Over HTTP it has no key and no session: each request brings a key as its
 * bearer token, and the service checks it. A refused call becomes a result with `isError`, which has the service's message.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { Maxsimd } from '../../clients/typescript/src/client.ts';
import { fetchFor } from '../../clients/typescript/src/connection.ts';
import { clientOf, requireIndex, type Endpoint } from './client.ts';

export interface Tools {
  readonly version: string;
  /** Also offers the tools that change something. The service refuses them for a key that may only read. */
  readonly write: boolean;
}

/** Time for attempts of a call while the service is away. The agent is told of limits at once, and decides. */
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

const IndexName = z.string().min(1).describe('Name or id of the index.');
const DocId = z.string().min(1).describe('The `doc_id` of the document.');
const JsonObject = z.record(z.string(), z.unknown());

const reads = { readOnlyHint: true, openWorldHint: false };
const writes = { readOnlyHint: false, idempotentHint: true, openWorldHint: false };

function toolServer(client: Maxsimd, { version, write }: Tools): McpServer {
  const server = new McpServer(
    { name: 'maxsimd', version },
    {
      instructions:
        'Searches indexes of documents by meaning. Results name documents by `doc_id`, with metadata and scores. Texts are not stored here.',
    },
  );
  addReadTools(server, client);
  if (write) addWriteTools(server, client);
  return server;
}

function addReadTools(server: McpServer, client: Maxsimd): void {
  server.registerTool(
    'list_indexes',
    { description: 'Lists the indexes, oldest first.', annotations: reads },
    async ({ signal }) => resultOf({ indexes: await client.listIndexes({ signal }) }),
  );
  server.registerTool(
    'search',
    {
      description:
        'Finds the best chunks of an index for a question in plain words. A higher score is better; it has no fixed range.',
      inputSchema: {
        index: IndexName,
        query: z.string().min(1),
        top_k: z.int().min(1).max(100).exactOptional().describe('Results at most. Default 10.'),
        where: JsonObject.exactOptional().describe(
          'Conditions on metadata fields, such as {"lang": "en", "year": {"gte": 2020}, "kind": {"in": ["a", "b"]}}.',
        ),
      },
      annotations: reads,
    },
    async ({ index, ...asked }, { signal }) => {
      const { id } = await requireIndex(client, index);
      const [found] = (await client.query(id, [asked], { signal })).results;
      return resultOf({ ...found });
    },
  );
  server.registerTool(
    'get_document',
    {
      description: 'Gets the metadata of a document, and its number of chunks.',
      inputSchema: { index: IndexName, doc_id: DocId },
      annotations: reads,
    },
    async ({ index, doc_id: docId }, { signal }) => {
      const { id } = await requireIndex(client, index);
      return resultOf({ ...(await client.getDocument(id, docId, { signal })) });
    },
  );
}

function addWriteTools(server: McpServer, client: Maxsimd): void {
  server.registerTool(
    'upsert_documents',
    {
      description:
        'Stores 1 to 50 documents. A `doc_id` that exists is replaced. Look at `failed` in the answer.',
      inputSchema: {
        index: IndexName,
        documents: z
          .array(
            z.strictObject({ doc_id: DocId, text: z.string().min(1), metadata: JsonObject.exactOptional() }),
          )
          .min(1)
          .max(50),
      },
      annotations: { ...writes, destructiveHint: true },
    },
    async ({ index, documents }, { signal }) => {
      const { id } = await requireIndex(client, index);
      return resultOf({ ...(await client.upsert(id, documents, { signal })) });
    },
  );
  server.registerTool(
    'delete_document',
    {
      description: 'Deletes one document. For an absent one `deleted` is false.',
      inputSchema: { index: IndexName, doc_id: DocId },
      annotations: { ...writes, destructiveHint: true },
    },
    async ({ index, doc_id: docId }, { signal }) => {
      const { id } = await requireIndex(client, index);
      return resultOf({ ...(await client.deleteDocument(id, docId, { signal })) });
    },
  );
}

/** Some clients read only the text. */
function resultOf(structuredContent: Record<string, unknown>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
}
