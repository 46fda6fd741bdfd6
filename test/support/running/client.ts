/**
 * A small HTTP client that hides nothing. It returns replies whole, whatever their status, and checks bodies with the schemas of
 * `wire.ts`.
 */
import { expect } from 'vitest';
import type { z } from 'zod';

import { errorBody, type DocumentInput, type ErrorBody } from './wire.ts';
import { hangMs } from './eventually.ts';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** The body as parsed JSON; `undefined` if the body is no JSON. */
  readonly body: unknown;
  readonly text: string;
}

export interface Call {
  readonly method?: string;
  /** Bearer token; absent = no Authorization header. */
  readonly key?: string;
  /** The body, sent as JSON. */
  readonly body?: unknown;
  /** The body, sent unchanged. Its type is `application/json`, unless `headers` has another. */
  readonly rawBody?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** After this time the call rejects, because no request may hang. Absent = `hangMs`. */
  readonly withinMs?: number;
}

type Fetch = (url: string, request: RequestInit) => Promise<Response>;

/** Services of this process, by the origin of their addresses. */
const served = new Map<string, Fetch>();

/** Makes `call` ask `answer` for all URLs of this origin. */
export function serveInProcess(origin: string, answer: Fetch): void {
  served.set(origin, answer);
}

export async function call(url: string, options: Call = {}): Promise<Reply> {
  const rawBody = options.body === undefined ? options.rawBody : JSON.stringify(options.body);
  const headers = new Headers(options.headers);
  if (options.key !== undefined) headers.set('authorization', `Bearer ${options.key}`);
  if (rawBody !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json');
  const bound = AbortSignal.timeout(options.withinMs ?? hangMs);
  const ask = served.get(new URL(url).origin) ?? fetch;
  const response = await ask(url, {
    method: options.method ?? (rawBody === undefined ? 'GET' : 'POST'),
    headers,
    signal: options.signal === undefined ? bound : AbortSignal.any([bound, options.signal]),
    redirect: 'manual',
    ...(rawBody === undefined ? {} : { body: rawBody }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: parseJson(text), text };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The endpoints of the API, called with one key. */
export interface Client {
  readonly url: string;
  readonly key: string;
  send(method: string, path: string, options?: Omit<Call, 'method' | 'key'>): Promise<Reply>;
  createIndex(body: unknown): Promise<Reply>;
  listIndexes(): Promise<Reply>;
  upsert(indexId: string, documents: readonly DocumentInput[]): Promise<Reply>;
  deleteDocument(indexId: string, docId: string): Promise<Reply>;
  search(indexId: string, body: unknown): Promise<Reply>;
  listMatching(indexId: string, body: unknown): Promise<Reply>;
  deleteDocuments(indexId: string, body: unknown): Promise<Reply>;
  facets(indexId: string, body: unknown): Promise<Reply>;
  query(indexId: string, queries: unknown): Promise<Reply>;
  score(body: unknown): Promise<Reply>;
  usage(): Promise<Reply>;
}

export function connect(url: string, key: string): Client {
  const send: Client['send'] = (method, path, options = {}) =>
    call(`${url}${path}`, { ...options, method, key });
  return {
    url,
    key,
    send,
    createIndex: (body) => send('POST', '/v1/indexes', { body }),
    listIndexes: () => send('GET', '/v1/indexes'),
    upsert: (indexId, documents) => send('POST', `/v1/indexes/${indexId}/documents`, { body: { documents } }),
    deleteDocument: (indexId, docId) =>
      send('DELETE', `/v1/indexes/${indexId}/documents/${encodeURIComponent(docId)}`),
    search: (indexId, body) => send('POST', `/v1/indexes/${indexId}/search`, { body }),
    listMatching: (indexId, body) => send('POST', `/v1/indexes/${indexId}/documents/list`, { body }),
    deleteDocuments: (indexId, body) => send('POST', `/v1/indexes/${indexId}/documents/delete`, { body }),
    facets: (indexId, body) => send('POST', `/v1/indexes/${indexId}/facets`, { body }),
    query: (indexId, queries) => send('POST', `/v1/indexes/${indexId}/query`, { body: { queries } }),
    score: (body) => send('POST', '/v1/score', { body }),
    usage: () => send('GET', '/v1/usage'),
  };
}

/** Asserts a success of exactly this shape and returns its body. */
export function expectReply<Schema extends z.ZodType>(
  reply: Reply,
  schema: Schema,
  status = 200,
): z.output<Schema> {
  expect({ status: reply.status, text: reply.status === status ? '' : reply.text }).toEqual({
    status,
    text: '',
  });
  expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/);
  expect(reply.headers.get('x-request-id')).toMatch(/^\S+$/);
  return schema.parse(reply.body);
}

/** Asserts an error of the common form and returns its `error` object. */
export function expectError(reply: Reply, status: number, code: string): ErrorBody['error'] {
  expect({ status: reply.status, text: reply.status === status ? '' : reply.text }).toEqual({
    status,
    text: '',
  });
  expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/);
  expect(reply.headers.get('x-request-id')).toMatch(/^\S+$/);
  const { error } = errorBody.parse(reply.body);
  expect(error.code).toBe(code);
  if (status === 429) {
    expect(reply.headers.get('retry-after')).toMatch(/^[1-9][0-9]*$/);
  }
  return error;
}

/** Asserts a 422 that names the field at `path` (a prefix of the issue's path is enough). */
export function expectInvalid(reply: Reply, path?: string): ErrorBody['error'] {
  const error = expectError(reply, 422, 'validation_error');
  if (path !== undefined) {
    expect(error.issues?.map((issue) => issue.path)).toEqual(
      expect.arrayContaining([expect.stringMatching(new RegExp(`^${path.replaceAll('.', '\\.')}(\\.|$)`))]),
    );
  }
  return error;
}
