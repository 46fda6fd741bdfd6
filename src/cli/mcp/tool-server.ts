/**
 * The server of the protocol for one caller. It lists the tools and calls them. A call that fails becomes a result with
 * `isError`, because the agent reads results.
 *
 * The handlers are our own: those of the SDK list schemas with `$schema`, which some hosts refuse, promise to tell of
 * changes to the list, which never come, and take arguments that are null or JSON text for errors of the server.
 */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { ErrorCode, McpError, type CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { Maxsimd } from '../../../clients/typescript/src/client.ts';
import { issuesInWords } from '../../input/issue-words.ts';
import { isObject, parseGivenJson } from '../json.ts';
import { readTools, writeTools, type Tool } from './tools.ts';

export interface Offer {
  readonly version: string;
  /** Also offers the tools that change something. The service refuses them for a key that may only read. */
  readonly write: boolean;
}

/** `wordsOf` says why a call failed. */
export function toolServer(
  client: Maxsimd,
  { version, write }: Offer,
  wordsOf: (error: unknown) => string,
): McpServer {
  const tools = new Map(Object.entries(write ? { ...readTools, ...writeTools } : readTools));
  const mcp = new McpServer(
    { name: 'maxsimd', version },
    {
      instructions:
        'Searches indexes of documents by meaning. Results name documents by `doc_id`, with metadata and scores. Texts are not stored here.',
    },
  );
  mcp.server.registerCapabilities({ tools: {} });
  const call = async (params: unknown, signal: AbortSignal): Promise<CallToolResult> => {
    const { name, arguments: given } = paramsOf(params);
    const tool = tools.get(name);
    if (tool === undefined) return failed(`there is no tool ${JSON.stringify(name)}`);
    const args = tool.input.safeParse(asMeant(given ?? {}, plainSchema(tool.input)));
    if (!args.success) return failed(issuesInWords(args.error));
    try {
      return done(await tool.run(client, args.data, signal));
    } catch (error) {
      return failed(wordsOf(error));
    }
  };
  mcp.server.fallbackRequestHandler = async ({ method, params }, { signal }) => {
    if (method === 'tools/list') return { tools: [...tools].map(listed) };
    if (method === 'tools/call') return call(params, signal);
    throw new McpError(ErrorCode.MethodNotFound, `there is no method ${JSON.stringify(method)}`);
  };
  return mcp;
}

function listed([name, { description, annotations, input, output }]: [string, Tool]): object {
  const [inputSchema, outputSchema] = [plainSchema(input), plainSchema(output)];
  return { name, description, annotations, inputSchema, outputSchema };
}

const callParams = z.looseObject({ name: z.string(), arguments: z.unknown().optional() });

function paramsOf(params: unknown): z.output<typeof callParams> {
  const parsed = callParams.safeParse(params);
  if (parsed.success) return parsed.data;
  throw new McpError(ErrorCode.InvalidParams, issuesInWords(parsed.error));
}

interface PlainSchema {
  [keyword: string]: unknown;
  type: string;
  properties?: Record<string, PlainSchema>;
  items?: PlainSchema;
}

/** Without the keyword that some hosts do not take. */
function plainSchema(schema: Tool['input']): PlainSchema {
  const { $schema: _dialect, ...plain } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return plain as PlainSchema;
}

/** Agents write null for an argument that they leave out, and some send objects and arrays as JSON text. */
function asMeant(given: unknown, { type, properties, items }: Partial<PlainSchema>): unknown {
  const value = typeof given === 'string' && /^(object|array)$/.test(type ?? '') ? fromJson(given) : given;
  if (items !== undefined && Array.isArray(value)) return value.map((item) => asMeant(item, items));
  if (properties === undefined || !isObject(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, member]) => [name, asMeant(member, properties[name] ?? {})]));
}

function fromJson(text: string): unknown {
  try {
    return parseGivenJson(text);
  } catch {
    return text;
  }
}

/** Some clients read only the text. */
function done(answer: object): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(answer) }], structuredContent: { ...answer } };
}

function failed(message: string): CallToolResult {
  return { content: [{ type: 'text', text: message }], isError: true };
}
