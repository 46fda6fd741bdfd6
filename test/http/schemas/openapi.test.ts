import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OpenAPIV3_1 } from 'openapi-types';
import { errorTable } from '../../../src/errors.ts';
import type { ErrorCode } from '../../../src/errors.ts';
import { Ranked } from '../../../src/http/schemas/ranking.ts';
import { Reranked } from '../../../src/http/schemas/rerank.ts';
import { Deleted, Index, IndexList, UpsertResult } from '../../../src/http/schemas/indexes.ts';
import { Health, ReadinessBody } from '../../../src/http/schemas/health.ts';
import { UsageSummary } from '../../../src/http/schemas/usage.ts';
import { startHttp } from '../../support/http/http-server.ts';
import type { Harness } from '../../support/http/http-server.ts';

const { query_length: defaultQueryLength } = JSON.parse(
  readFileSync(resolve(import.meta.dirname, '../../../models/minilm-l6-maxsim/1/onnx_config.json'), 'utf8'),
) as { readonly query_length: number };

let http: Harness;
let document: OpenAPIV3_1.Document;

beforeAll(async () => {
  http = await startHttp();
  document = (await http.app.inject({ url: '/openapi.json' })).json();
});
afterAll(() => http[Symbol.asyncDispose]());

type Operation = OpenAPIV3_1.OperationObject;
type Response = OpenAPIV3_1.ResponseObject;

const operations = (): { method: string; path: string; operation: Operation }[] =>
  Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item ?? {}).map(([method, operation]) => ({
      method,
      path,
      operation: operation as Operation,
    })),
  );

describe('the document', () => {
  test('and the registered routes are the same, both ways', () => {
    const registered = printedRoutes(http.app.printRoutes({ commonPrefix: false, includeMeta: false }));
    const own = registered.filter((route) => !/^\w+ \/docs\//.test(route) && !route.startsWith('HEAD '));
    const documented = operations().map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(own.toSorted()).toEqual(documented.toSorted());
    expect(documented.length).toBeGreaterThan(20);
  });

  test('holds every error code and every status of the error table', () => {
    const error = document.components?.schemas?.['ErrorDetail'] as unknown as {
      properties: { code: { enum: string[] } };
    };
    expect(error.properties.code.enum).toEqual(Object.keys(errorTable));
    for (const code of Object.keys(errorTable) as ErrorCode[]) {
      const status = errorTable[code].httpStatus;
      const naming = operations().filter(({ operation }) =>
        (operation.responses?.[status] as Response | undefined)?.description.includes(`\`${code}\``),
      );
      expect([code, naming.length > 0]).toEqual([code, true]);
    }
  });

  test('gives every response x-request-id, every 429 Retry-After, every error the error body', () => {
    for (const { path, operation } of operations()) {
      for (const [status, given] of Object.entries(operation.responses ?? {})) {
        const response = given as Response;
        expect([path, status, Object.keys(response.headers ?? {})]).toEqual([
          path,
          status,
          expect.arrayContaining(['x-request-id', ...(status === '429' ? ['retry-after'] : [])]),
        ]);
        if (Number(status) < 400) continue;
        expect(response.content?.['application/json']?.schema).toEqual({
          $ref: '#/components/schemas/Error',
        });
      }
    }
  });

  test('wants a key on /v1, /v2 and /rerank, and nowhere else', () => {
    for (const { path, operation } of operations()) {
      const security = operation.security ?? document.security;
      expect([path, security]).toEqual([
        path,
        /^\/v[12]\//.test(path) || path === '/rerank' ? [{ apiKey: [] }] : [],
      ]);
    }
    expect(document.components?.securitySchemes?.['apiKey']).toMatchObject({
      type: 'http',
      scheme: 'bearer',
    });
  });

  test('marks what the specification does not have', () => {
    const usage = document.paths?.['/v1/usage']?.get?.responses?.['200'] as Response | undefined;
    expect(usage?.headers?.['ratelimit-limit']).toMatchObject({ 'x-maxsimd-addition': true });
    expect(document.components?.schemas?.['TextRange']).toMatchObject({ 'x-maxsimd-addition': true });
  });

  test('states how much of a query the default model reads', () => {
    const query = document.components?.schemas?.['SearchInput']?.properties?.['query'];
    // Two of the positions are special tokens.
    expect(JSON.stringify(query)).toContain(`the first ${defaultQueryLength - 2} tokens`);
  });

  test('suits generators: objects have names, answers are open, no property has a default', () => {
    const nested: string[] = [];
    for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
      const text = JSON.stringify(schema);
      expect([name, text.includes('"default":')]).toEqual([name, false]);
      expect([name, text.includes('"additionalProperties":false')]).toEqual([name, name.endsWith('Input')]);
      nested.push(...[...text.matchAll(/"properties":/g)].slice(1).map(() => name));
    }
    expect(nested).toEqual([]);
    expect(JSON.stringify(document.paths)).not.toContain('"properties":');
    expect(document.servers).toEqual([{ url: '.', description: 'This service.' }]);
  });

  test('offers an example of every request body', () => {
    for (const { operation } of operations()) {
      const body = operation.requestBody as OpenAPIV3_1.RequestBodyObject | undefined;
      if (body === undefined) continue;
      const examples = Object.keys(body.content['application/json']?.examples ?? {});
      expect([operation.operationId, examples.length > 0]).toEqual([operation.operationId, true]);
    }
  });

  test('is sound: references resolve, parameters match paths, operation ids are unique', () => {
    for (const [, name] of JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
      expect(document.components?.schemas).toHaveProperty(name!);
    }
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).not.toContain(undefined);
    for (const { path, operation } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = (operation.parameters ?? []) as OpenAPIV3_1.ParameterObject[];
      const parameters = declared.filter((parameter) => parameter.in !== 'query');
      expect([
        path,
        parameters.map((parameter) => [parameter.name, parameter.in, parameter.required]),
      ]).toEqual([path, inPath.map((name) => [name, 'path', true])]);
      for (const response of Object.values(operation.responses ?? {}))
        expect((response as Response).description).toBeTruthy();
      const body = operation.requestBody as OpenAPIV3_1.RequestBodyObject | undefined;
      if (body !== undefined) expect(Object.keys(body.content)).toEqual(['application/json']);
    }
  });
});

test('answers keep to the schemas that describe them', async () => {
  const documents = [{ doc_id: 'a', text: 't', metadata: { deep: { a: [1, null] } } }];
  const id = await http.createIndex();
  const get = async (url: string) => (await http.inject({ url })).json();
  const post = async (url: string, payload: object) =>
    (await http.inject({ method: 'POST', url, payload })).json();
  Index.parse(await get(`/v1/indexes/${id}`));
  IndexList.parse(await get('/v1/indexes'));
  UsageSummary.parse(await get('/v1/usage'));
  Health.parse(await get('/healthz'));
  ReadinessBody.parse(await get('/readyz'));
  UpsertResult.parse(await post(`/v1/indexes/${id}/documents`, { documents }));
  Ranked.parse(await post(`/v1/indexes/${id}/search`, { query: 'q' }));
  const rerank = { model: 'default', query: 'q', documents: ['t', { text: 'u' }] };
  Reranked.parse(await post('/v2/rerank', rerank));
  Reranked.parse(await post('/v2/rerank', { ...rerank, return_documents: true }));
  Deleted.parse((await http.inject({ method: 'DELETE', url: `/v1/indexes/${id}/documents/a` })).json());

  http.service.ranked = {
    results: [
      {
        docId: 'quote " and \u2028',
        chunkId: 'c\\1',
        chunkIndex: 3,
        score: 1e-7,
        normalizedScore: 0.25,
        textRange: { start: 3, end: 70 },
        metadata: '{"a": [1]}',
        components: {
          maxsim: -0.5,
          similarities: Float32Array.of(0.25, 0.5),
          documentTokens: Uint32Array.of(9, 0),
          places: [
            { place: { start: 8, end: 12 }, all: [{ start: 8, end: 12 }] },
            {
              place: undefined,
              all: [
                { start: 2, end: 3 },
                { start: 5, end: 6 },
              ],
            },
          ],
          candidateScore: 2,
          candidateRank: 0,
        },
      },
    ],
    usage: { inputTokens: 1, documentCount: 0, chunkCount: 1, candidateCount: 5, latencyMs: 3.4 },
  };
  const ranked = await post('/v1/score', { query: 'q', documents, return_components: true });
  http.service.ranked = undefined;
  expect(Ranked.parse(ranked)).toEqual({
    results: [
      {
        doc_id: 'quote " and \u2028',
        chunk_id: 'c\\1',
        chunk_index: 3,
        score: 1e-7,
        normalized_score: 0.25,
        text_range: { start: 3, end: 70 },
        metadata: { a: [1] },
        components: {
          maxsim: -0.5,
          per_query_token: [
            { token_index: 0, document_token_index: 9, text_range: { start: 8, end: 12 }, similarity: 0.25 },
            {
              token_index: 1,
              document_token_index: 0,
              text_ranges: [
                { start: 2, end: 3 },
                { start: 5, end: 6 },
              ],
              similarity: 0.5,
            },
          ],
          candidate_score: 2,
          candidate_rank: 0,
        },
      },
    ],
    usage: { input_tokens: 1, document_count: 0, chunk_count: 1, candidate_count: 5, latency_ms: 3 },
  });
});

describe('the interactive page', () => {
  test('reads the same document', async () => {
    const servers = [{ url: '..', description: 'This service.' }];
    expect((await http.app.inject({ url: '/docs/json' })).json()).toEqual({ ...document, servers });
    expect((await http.app.inject({ url: '/docs/static/nothing.js' })).json()).toMatchObject({
      error: { code: 'not_found' },
    });
  });
});

/** `METHOD /path/{parameter}` of every route in the tree that Fastify prints. */
function printedRoutes(tree: string): string[] {
  const routes: string[] = [];
  const prefixes: string[] = [];
  for (const line of tree.split('\n')) {
    const match = /^([│ ├└─]*)(\S+)(?: \(([A-Z, ]+)\))?/.exec(line);
    if (match === null || match[2] === undefined) continue;
    const depth = Math.floor((match[1] ?? '').length / 4);
    prefixes.length = Math.max(0, depth - 1);
    const path = `${prefixes.join('')}${match[2]}`;
    prefixes.push(match[2]);
    for (const method of (match[3] ?? '').split(', ').filter(Boolean)) {
      routes.push(`${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
    }
  }
  return routes;
}
