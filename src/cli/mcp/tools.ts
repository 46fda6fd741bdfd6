/** The tools that an agent gets, with the client of one key. A call that fails becomes a result with the message of the error. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { Maxsimd } from '../../../clients/typescript/src/client.ts';
import { requireIndex } from '../client.ts';

export interface Tools {
  readonly version: string;
  /** Also offers the tools that change something. The service refuses them for a key that may only read. */
  readonly write: boolean;
}

const IndexName = z.string().min(1).describe('Name or id of the index.');
const DocId = z.string().min(1).describe('The `doc_id` of the document.');
const JsonObject = z.record(z.string(), z.unknown());

const reads = { readOnlyHint: true, openWorldHint: false };
const writes = { readOnlyHint: false, idempotentHint: true, openWorldHint: false };

export function toolServer(client: Maxsimd, { version, write }: Tools): McpServer {
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
    { description: 'Lists the indexes, oldest first.', inputSchema: z.strictObject({}), annotations: reads },
    async (_nothing, { signal }) => resultOf({ indexes: await client.listIndexes({ signal }) }),
  );
  server.registerTool(
    'search',
    {
      description:
        'Finds the best chunks of an index for a question in plain words. A higher score is better; it has no fixed range.',
      inputSchema: z.strictObject({
        index: IndexName,
        query: z.string().min(1),
        filter: JsonObject.exactOptional().describe(
          'Metadata fields with the value that each must have, such as {"lang": "en"}.',
        ),
        top_k: z.int().min(1).max(100).exactOptional().describe('Results at most. Default 10.'),
        where: JsonObject.exactOptional().describe(
          'Conditions on metadata fields, such as {"lang": "en", "year": {"gte": 2020}, "kind": {"in": ["a", "b"]}}.',
        ),
        group_by_document: z.boolean().exactOptional().describe('Only the best chunk of each document.'),
      }),
      annotations: reads,
    },
    async ({ index, ...asked }, { signal }) => {
      const { id } = await requireIndex(client, index);
      return resultOf({ ...(await client.search(id, asked, { signal })) });
    },
  );
  server.registerTool(
    'get_document',
    {
      description: 'Gets the metadata of a document, and its number of chunks.',
      inputSchema: z.strictObject({ index: IndexName, doc_id: DocId }),
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
      inputSchema: z.strictObject({
        index: IndexName,
        documents: z
          .array(
            z.strictObject({ doc_id: DocId, text: z.string().min(1), metadata: JsonObject.exactOptional() }),
          )
          .min(1)
          .max(50),
      }),
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
      inputSchema: z.strictObject({ index: IndexName, doc_id: DocId }),
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
