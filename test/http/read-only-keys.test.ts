/** A key that may only read can call the operations that read, and no other operation of the served document. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startHttp, type Harness } from '../support/http/http-server.ts';
import { parseOpenApi } from '../support/running/openapi.ts';
import { addressOf, routesOf, type Route } from '../support/running/routes.ts';

/** Everything else is refused, also a route that does not exist yet. */
const reading = [
  'GET /v1/indexes',
  'GET /v1/indexes/{index_id}',
  'GET /v1/indexes/{index_id}/documents',
  'GET /v1/indexes/{index_id}/documents/{doc_id}',
  'GET /v1/indexes/{index_id}/count',
  'POST /v1/indexes/{index_id}/documents/list',
  'POST /v1/indexes/{index_id}/facets',
  'POST /v1/indexes/{index_id}/search',
  'POST /v1/indexes/{index_id}/query',
  'POST /v1/score',
  'POST /v1/rerank',
  'POST /v2/rerank',
  'GET /v1/usage',
  'GET /v1/usage/days',
  'GET /v1/activity',
];

let http: Harness;
let routes: readonly Route[];
beforeEach(async () => {
  http = await startHttp();
  routes = routesOf(parseOpenApi((await http.app.inject({ url: '/openapi.json' })).json()));
});
afterEach(() => http[Symbol.asyncDispose]());

async function send(route: Route) {
  const url = addressOf(route, { index_id: randomUUID(), doc_id: 'bee' });
  const [example] = route.examples;
  const payload = example === undefined ? undefined : JSON.stringify(example);
  const method = route.method as 'GET' | 'POST' | 'PATCH' | 'DELETE';
  const answer = await http.inject({ method, url, ...(payload !== undefined && { payload }) });
  return { status: answer.statusCode, code: answer.json<{ error?: { code: string } }>().error?.code };
}

test('it reads, and is refused whatever may change something before the service hears of it', async () => {
  http.service.access = 'read';
  const allowed: string[] = [];
  for (const route of routes) {
    const before = http.service.calls.length;
    const { status, code } = await send(route);
    if (code !== 'permission_denied') allowed.push(route.name);
    else {
      expect(status).toBe(403);
      expect(http.service.calls.length, route.name).toBe(before);
    }
  }
  expect(allowed.toSorted()).toEqual(reading.toSorted());
});

test('a key with full access is refused nothing', async () => {
  for (const route of routes) expect((await send(route)).code, route.name).not.toBe('permission_denied');
});

test('an address that is none, and a request that is no longer admitted, say so first', async () => {
  http.service.access = 'read';
  expect((await http.inject({ method: 'POST', url: '/v1/nothing' })).statusCode).toBe(404);
  expect(http.service.permitsHeld).toBe(0);
});
