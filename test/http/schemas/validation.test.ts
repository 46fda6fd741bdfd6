import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LightMyRequestResponse } from 'fastify';
import { startHttp } from '../../support/http/http-server.ts';
import type { Harness } from '../../support/http/http-server.ts';
import type { Call } from '../../support/http/memory-service.ts';

let http: Harness;
let indexId: string;

beforeAll(async () => {
  http = await startHttp();
  indexId = await http.createIndex();
});
afterAll(() => http.app.close());

const post = (url: string, payload: string | object) => http.inject({ method: 'POST', url, payload });
const upsert = (payload: string | object) => post(`/v1/indexes/${indexId}/documents`, payload);
const search = (payload: string | object) => post(`/v1/indexes/${indexId}/search`, payload);
const create = (payload: string | object) => post('/v1/indexes', payload);

const document = (fields: object = {}) => ({ doc_id: 'a', text: 'some text', ...fields });

interface ErrorAnswer {
  error: { code: string; message: string; issues: { path: string; message: string; code: string }[] };
}

function expectIssue(response: LightMyRequestResponse, path: string, code: string): void {
  expect(response.statusCode).toBe(422);
  const { error } = response.json<ErrorAnswer>();
  expect(error.code).toBe('validation_error');
  expect(error.issues.map((issue) => [issue.path, issue.code])).toContainEqual([path, code]);
}

function lastCall(name: string): Call {
  const call = http.service.calls.findLast((made) => made.name === name);
  if (call === undefined) throw new Error(`${name} was not called`);
  return call;
}

describe('pages', () => {
  const list = (query: string) => http.inject({ url: `/v1/indexes/${indexId}/documents?${query}` });
  const indexes = (query: string) => http.inject({ url: `/v1/indexes?${query}` });
  const cursor = (place: string) => `cursor=${Buffer.from(place).toString('base64url')}`;

  test('have 1 to 1,000 items, 100 if nobody says', async () => {
    for (const ask of [list, indexes]) {
      for (const limit of ['0', '-1', '1001', '1.5', 'x', '', 'NaN', '1e9']) {
        const response = await ask(`limit=${limit}`);
        expect([limit, response.statusCode]).toEqual([limit, 422]);
        expect(response.json<ErrorAnswer>().error.issues[0]?.path).toBe('limit');
      }
      expectIssue(await ask('limit=1&limit=2'), 'limit', 'invalid_type');
      expect((await ask('limit=1')).statusCode).toBe(200);
      expect((await ask('limit=1000')).statusCode).toBe(200);
    }
    await list('');
    expect(lastCall('listDocuments').arguments[1]).toEqual({ limit: 100, after: undefined });
  });

  test('begin where a page before has ended, and nowhere else', async () => {
    await list(cursor('é/💥'));
    expect(lastCall('listDocuments').arguments[1]).toMatchObject({ after: 'é/💥' });
    await indexes(cursor(`17 ${indexId}`));
    expect(lastCall('listIndexPage').arguments[0]).toEqual({
      limit: 100,
      after: { createdAtMs: 17, id: indexId },
    });
    for (const wrong of ['cursor=', 'cursor=*', 'cursor=YQ==', 'cursor=_w', 'cursor=YR'])
      expectIssue(await list(wrong), 'cursor', 'invalid_cursor');
    for (const wrong of ['cursor=', cursor('a'), cursor(`x ${indexId}`), cursor('17 17')])
      expectIssue(await indexes(wrong), 'cursor', 'invalid_cursor');
    expectIssue(await list('cursor=YQ&cursor=YQ'), 'cursor', 'invalid_type');
  });
});

describe('query parameters', () => {
  test('that a route does not know are a 422 with their name, on every route, before the body is read', async () => {
    const { paths } = (await http.app.inject({ url: '/openapi.json' })).json<{
      paths: Record<string, object>;
    }>();
    const routes = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => ({ method: method.toUpperCase() as 'GET', path })),
    );
    const tenants = routes.filter(({ path }) => /^\/v[12]\//.test(path));
    expect(tenants.length).toBeGreaterThan(15);
    for (const { method, path } of tenants) {
      const url = `${path.replaceAll(/\{\w+\}/g, 'x')}?nonsense=1`;
      const body = method === 'GET' ? {} : { payload: '{"malformed' };
      expectIssue(await http.inject({ method, url, ...body }), 'nonsense', 'unrecognized_keys');
    }
    // The key comes first, and an address that does not exist is 404.
    expect((await http.app.inject({ url: '/v1/usage?nonsense=1' })).statusCode).toBe(401);
    expect((await http.inject({ url: '/v1/nothing?nonsense=1' })).statusCode).toBe(404);
    expect((await http.app.inject({ url: '/healthz?nonsense=1' })).statusCode).toBe(200);
  });

  test('that are misspelt are answered with the nearest name', async () => {
    const misspelt = await post(`/v1/indexes/${indexId}/documents?expire_at=2021-06-01T08:00:00Z`, {
      documents: [document()],
    });
    expectIssue(misspelt, 'expire_at', 'unrecognized_keys');
    expect(misspelt.json<ErrorAnswer>().error.message).toBe(
      'expire_at: unknown parameter (did you mean expires_at?)',
    );
    const page = await http.inject({ url: '/v1/indexes?limit=1&curser=YQ' });
    expect(page.json<ErrorAnswer>().error.message).toBe('curser: unknown parameter (did you mean cursor?)');
    expectIssue(await http.inject({ url: '/v1/indexes?__proto__=1' }), '__proto__', 'unrecognized_keys');
    const long = await http.inject({ url: `/v1/indexes?${'n'.repeat(5_000)}=1` });
    expectIssue(long, `${'n'.repeat(64)}...`, 'unrecognized_keys');
  });
});

describe('the time at which a document expires', () => {
  const at = (expiresAt: string) =>
    post(`/v1/indexes/${indexId}/documents?expires_at=${encodeURIComponent(expiresAt)}`, {
      documents: [document()],
    });
  const change = (expiresAt: string) =>
    http.inject({
      method: 'PATCH',
      url: `/v1/indexes/${indexId}/documents/a`,
      payload: { expires_at: expiresAt },
    });

  test.each([
    '9999-12-31T23:59:59-23:59',
    '9999-12-31T23:59:59.001-00:01',
    '0000-06-01T00:00:00Z',
    '0000-01-01T00:00:00+01:00',
    '0001-01-01T00:00:00+00:01',
  ])('%s is refused with the bounds', async (expiresAt) => {
    await upsert({ documents: [document()] });
    for (const response of [await at(expiresAt), await change(expiresAt)]) {
      expectIssue(response, 'expires_at', 'invalid');
      expect(response.json<ErrorAnswer>().error.message).toBe(
        'expires_at: must be a time from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z',
      );
    }
  });

  test.each(['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59+23:59', '0001-01-01T00:00:00Z'])(
    '%s is taken',
    async (expiresAt) => {
      await upsert({ documents: [document()] });
      expect((await at(expiresAt)).statusCode).toBe(200);
      expect((await change(expiresAt)).statusCode).toBe(200);
    },
  );
});

describe('updates', () => {
  const patch = (url: string, payload: string | object) => http.inject({ method: 'PATCH', url, payload });

  test('of an index have one of a name and another index', async () => {
    const update = (payload: string | object) => patch(`/v1/indexes/${indexId}`, payload);
    expectIssue(await update({}), '', 'invalid');
    expectIssue(await update({ name: 'a', swap_name_with: indexId }), '', 'invalid');
    expectIssue(await update({ name: '' }), 'name', 'too_small');
    expectIssue(await update({ name: 'x'.repeat(256) }), 'name', 'too_big');
    expectIssue(await update({ swap_name_with: 'books' }), 'swap_name_with', 'invalid_format');
    expectIssue(await update({ name: 'a', status: 'ready' }), 'status', 'unrecognized_keys');
    expect((await update({ name: 'another' })).statusCode).toBe(200);
  });

  test('of a document have metadata, bounded as ever, or an expiry, and nothing else', async () => {
    await upsert({ documents: [document()] });
    const update = (payload: string | object) => patch(`/v1/indexes/${indexId}/documents/a`, payload);
    const missing = await update({});
    expectIssue(missing, 'metadata', 'invalid');
    expect(missing.json<ErrorAnswer>().error.message).toBe(
      'metadata: must have `metadata`, `metadata_merge` or `expires_at`',
    );
    expectIssue(await update({ metadata: [] }), 'metadata', 'invalid_type');
    expectIssue(await update({ metadata: { a: 'x'.repeat(16_384) } }), 'metadata', 'too_big');
    expectIssue(await update({ metadata: {}, text: 'other' }), 'text', 'unrecognized_keys');
    expectIssue(await update({ metadata: {}, expires_at: 'tomorrow' }), 'expires_at', 'invalid_format');
    expectIssue(await update({ expires_at: 1 }), 'expires_at', 'invalid_type');
    expectIssue(await update({ metadata: {}, metadata_merge: {} }), 'metadata_merge', 'invalid');
    expectIssue(await update({ metadata_merge: [] }), 'metadata_merge', 'invalid_type');
    expectIssue(await update('{"metadata_merge":{"a":{"b":1,"b":2}}}'), 'metadata_merge.a.b', 'duplicate');
    expect((await update('{"metadata_merge":{"n":1.10,"a":null}}')).statusCode).toBe(200);
    expect(lastCall('updateDocument').arguments[2]).toMatchObject({ metadataMerge: '{"n":1.10,"a":null}' });
    expect((await update({ expires_at: null })).statusCode).toBe(200);
    expect((await update('{"metadata":{"n": 1.0, "__proto__":{}}}')).body).toBe(
      '{"doc_id":"a","metadata":{"n":1.0,"__proto__":{}},"chunk_count":1}',
    );
  });
});

describe('documents', () => {
  test('a million wrong items are refused without looking at each', async () => {
    const response = await upsert(`{"documents":[${'0,'.repeat(1_000_000)}0]}`);
    expectIssue(response, 'documents', 'too_big');
    expect(response.json<ErrorAnswer>().error.issues).toHaveLength(1);
  });

  test('fields that are missing, unknown or of the wrong type are named by path', async () => {
    expectIssue(await upsert({}), 'documents', 'invalid_type');
    expectIssue(await upsert({ documents: [document()], extra: 1 }), 'extra', 'unrecognized_keys');
    expectIssue(await upsert({ documents: [document({ id: 1 })] }), 'documents.0.id', 'unrecognized_keys');
    expectIssue(await upsert({ documents: [{ doc_id: 'a' }] }), 'documents.0.text', 'invalid_type');
    expectIssue(await upsert({ documents: [{ text: 'a' }] }), 'documents.0.doc_id', 'invalid_type');
    expectIssue(await upsert({ documents: [document({ text: 7 })] }), 'documents.0.text', 'invalid_type');
    expectIssue(await upsert({ documents: 'x' }), 'documents', 'invalid_type');
    expectIssue(await upsert({ documents: [document(), null] }), 'documents.1', 'invalid_type');
    expectIssue(await upsert('{"__proto__":{"documents":[]}}'), '__proto__', 'unrecognized_keys');
  });

  test('at most 100 issues are reported, and long keys are shortened', async () => {
    const keys = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`${at}${'k'.repeat(200)}`, 1]));
    const { issues } = (await upsert(keys)).json<ErrorAnswer>().error;
    expect(issues).toHaveLength(100);
    expect(Math.max(...issues.map((issue) => issue.path.length))).toBeLessThanOrEqual(67);
  });

  test('half a character in a text reads as U+FFFD', async () => {
    expect((await upsert('{"documents":[{"doc_id":"a","text":"x\\ud83d"}]}')).statusCode).toBe(200);
    expect(lastCall('upsertDocuments').arguments[1]).toMatchObject([{ text: 'x\uFFFD' }]);
  });
});

describe('doc_id', () => {
  test('a lone surrogate is refused: it has no address', async () => {
    expectIssue(
      await upsert('{"documents":[{"doc_id":"a\\udc00","text":"x"}]}'),
      'documents.0.doc_id',
      'invalid_unicode',
    );
  });
});

describe('index_id', () => {
  test('is read in either case on every route, and in bodies (RFC 9562 section 4)', async () => {
    const [id, other] = [await http.createIndex(), await http.createIndex()];
    const index = `/v1/indexes/${id.toUpperCase()}`;
    for (const [method, url, payload] of [
      ['GET', index, undefined],
      ['PATCH', index, { swap_name_with: other.toUpperCase() }],
      ['POST', `${index}/documents`, { documents: [{ doc_id: 'A', text: 't' }] }],
      ['GET', `${index}/documents`, undefined],
      ['GET', `${index}/count`, undefined],
      ['POST', `${index}/search`, { query: 'q' }],
      ['POST', `${index}/query`, { queries: [{ query: 'q' }] }],
      ['DELETE', `${index}/documents/A`, undefined],
      ['DELETE', index, undefined],
    ] as const) {
      http.service.calls.length = 0;
      const answer = await http.inject({ method, url, ...(payload && { payload }) });
      expect([method, url, answer.statusCode]).toEqual([method, url, 200]);
      const given = JSON.stringify(http.service.calls.map((call) => call.arguments));
      expect(given).toContain(id);
      expect(given).not.toContain(id.toUpperCase());
      expect(given).not.toContain(other.toUpperCase());
    }
  });
});

describe('search', () => {
  test('what is omitted stays omitted, return_components is false', async () => {
    await search({ query: 'q' });
    expect(lastCall('search').arguments[1]).toEqual({ query: 'q', returnComponents: false });
    await search({
      query: 'q',
      top_k: 3,
      candidate_k: 7,
      filter: { a: 1 },
      where: { b: { gt: 1 } },
      group_by_document: true,
      exact: true,
      return_components: true,
    });
    expect(lastCall('search').arguments[1]).toEqual({
      query: 'q',
      topK: 3,
      candidateK: 7,
      filter: '{"a":1}',
      where: '{"b":{"gt":1}}',
      groupByDocument: true,
      exact: true,
      returnComponents: true,
    });
    expectIssue(await search({ query: 'q', return_components: 'yes' }), 'return_components', 'invalid_type');
    expectIssue(await search({ query: 'q', limit: 1 }), 'limit', 'unrecognized_keys');
  });
});

describe('create index', () => {
  test('name is required and not empty; unknown properties are refused, also in chunking', async () => {
    expectIssue(await create({}), 'name', 'invalid_type');
    expectIssue(await create({ name: '' }), 'name', 'too_small');
    expect((await create({ name: 'é'.repeat(255) })).statusCode).toBe(201);
    expectIssue(await create({ name: 'n'.repeat(256) }), 'name', 'too_big');
    expectIssue(await create({ name: 'n', model: '' }), 'model', 'too_small');
    expectIssue(await create({ name: 'n', status: 'ready' }), 'status', 'unrecognized_keys');
    expectIssue(await create({ name: 'n', chunking: { size: 1 } }), 'chunking.size', 'unrecognized_keys');
    expectIssue(await create({ name: 'n', text_retention: 'all' }), 'text_retention', 'invalid_value');
    expectIssue(await create({ name: 'n', chunking: { max_tokens: 0 } }), 'chunking.max_tokens', 'too_small');
  });
});

describe('bodies', () => {
  test('nested a hundred thousand deep are a 422', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expectIssue(await search(`{"query":${deep}}`), 'query', 'too_deep');
    expectIssue(await search(`{"query":"q","filter":{"a":${deep}}}`), 'filter', 'too_deep');
    expectIssue(
      await upsert(`{"documents":[{"doc_id":"a","text":"t","metadata":{"a":${deep}}}]}`),
      'documents.0.metadata',
      'too_deep',
    );
  });

  test('may begin with a byte order mark', async () => {
    expect((await search('\uFEFF{"query":"q"}')).statusCode).toBe(200);
  });

  test('with a name twice in one object are a 422 with its path', async () => {
    expectIssue(await search('{"query":"first","query":"last"}'), 'query', 'duplicate');
    const where = '{"tags":{"contains":"a","contains":"b"}}';
    expectIssue(await search(`{"query":"q","where":${where}}`), 'where.tags.contains', 'duplicate');
    expectIssue(
      await upsert('{"documents":[{"doc_id":"a","text":"t","metadata":{"a":{"b":1,"b":1}}}]}'),
      'documents.0.metadata.a.b',
      'duplicate',
    );
  });

  test('of another media type, character set or coding are a 415', async () => {
    for (const headers of [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'application/jsonx' },
      { 'content-type': 'nonsense' },
      { 'content-type': 'application/json; charset=latin1' },
      { 'content-type': 'application/json; charset=utf-16' },
      { 'content-type': 'application/json', 'content-encoding': 'br' },
    ]) {
      const url = `/v1/indexes/${indexId}/search`;
      const response = await http.inject({ method: 'POST', url, headers, payload: '{"query":"q"}' });
      expect([response.statusCode, headers]).toEqual([415, headers]);
      expect(response.json<ErrorAnswer>().error.code).toBe('validation_error');
    }
    for (const type of [
      'application/json; charset=utf-8',
      'application/json;charset="UTF-8"',
      'application/json; charset=utf8',
      'application/json; charset=UTF8',
      'application/json; charset="Utf8"',
      'application/json; charset=us-ascii',
      'application/json;charset=US-ASCII',
      'APPLICATION/JSON',
    ]) {
      const url = `/v1/indexes/${indexId}/search`;
      const headers = { 'content-type': type };
      const response = await http.inject({ method: 'POST', url, headers, payload: '{"query":"q"}' });
      expect([response.statusCode, type]).toEqual([200, type]);
    }
  });
});

describe('messages', () => {
  test.each<[string, string | object, string]>([
    ['search', {}, 'query: is required'],
    ['search', { query: 7 }, 'query: must be a string, not number'],
    ['search', { query: 'q', top_k: '3' }, 'top_k: must be a number, not string'],
    ['search', { query: 'q', top_k: 1.5 }, 'top_k: must be a whole number'],
    ['search', { query: 'q', top_k: 1000 }, 'top_k: must be at most 100'],
    ['search', { query: 'q', top_k: 0 }, 'top_k: must be at least 1'],
    ['search', { query: 'q', topk: 3 }, 'topk: unknown property'],
    [
      'search',
      { query: 'q', return_components: 'yes' },
      'return_components: must be true or false, not string',
    ],
    ['documents', { documents: [] }, 'documents: must have at least 1 item'],
    ['documents', { documents: 'text' }, 'documents: must be an array, not string'],
    ['documents', { documents: ['text'] }, 'documents.0: must be an object, not string'],
    ['documents', { documents: [{ text: 'x' }] }, 'documents.0.doc_id: is required'],
    ['search', "{'query':'q'}", 'the body is not valid JSON: see line 1, column 2'],
    ['search', '{"query":', 'the body is not valid JSON: it ends too early'],
    ['search', '{"query":\n  "é\t"}', 'the body is not valid JSON: see line 2, column 5'],
  ])('of %s with %j is "%s"', async (route, body, message) => {
    const response = await post(`/v1/indexes/${indexId}/${route}`, body);
    expect(response.json<ErrorAnswer>().error.message).toBe(message);
  });

  test('of a page that has no number of items', async () => {
    const response = await http.inject({ url: '/v1/indexes?limit=abc' });
    expect(response.json<ErrorAnswer>().error.message).toBe('limit: must be a whole number from 1 to 1000');
  });

  test('of an index id that is none', async () => {
    const response = await post('/v1/indexes/first/search', { query: 'q' });
    expect(response.json<ErrorAnswer>().error.message).toBe(
      'index_id: must be the id of an index, a UUID, not its name',
    );
  });
});
