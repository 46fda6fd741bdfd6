/** The form of requests: the bounds of each field, the issue that each breach gives, and its message. */
import { beforeAll, describe, expect, test } from 'vitest';
import {
  call,
  expectError,
  expectInvalid,
  expectReply,
  type Client,
  type Reply,
} from '../../support/running/client.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { documentPage, indexPage } from '../../support/running/wire.ts';

const stage = await useContractStage();

let client: Client;
let indexId: string;
beforeAll(async () => {
  ({ client } = stage);
  ({ id: indexId } = await makeIndex(client));
});

const sent = (body: string | object) => (typeof body === 'string' ? { rawBody: body } : { body });
const post = (path: string, body: string | object) => client.send('POST', path, sent(body));
const patch = (path: string, body: string | object) => client.send('PATCH', path, sent(body));
const upsert = (body: string | object) => post(`/v1/indexes/${indexId}/documents`, body);
const search = (body: string | object) => post(`/v1/indexes/${indexId}/search`, body);
const create = (body: string | object) => post('/v1/indexes', body);
const document = (fields: object = {}) => ({ doc_id: 'a', text: 'some text', ...fields });

function expectIssue(reply: Reply, path: string, code: string): void {
  const { issues } = expectInvalid(reply);
  expect(issues?.map((issue) => [issue.path, issue.code])).toContainEqual([path, code]);
}

const messageOf = (reply: Reply): string => expectInvalid(reply).message;

describe('pages', () => {
  const list = (query: string) => client.send('GET', `/v1/indexes/${indexId}/documents?${query}`);
  const indexes = (query: string) => client.send('GET', `/v1/indexes?${query}`);
  const cursor = (place: string) => `cursor=${Buffer.from(place).toString('base64url')}`;

  test('[decision-21, decision-43] a page has 1 to 1,000 items, and begins where a page before has ended', async () => {
    for (const ask of [list, indexes]) {
      for (const limit of ['0', '-1', '1001', '1.5', 'x', '', 'NaN', '1e9'])
        expect(expectInvalid(await ask(`limit=${limit}`)).issues?.[0]?.path).toBe('limit');
      expectIssue(await ask('limit=1&limit=2'), 'limit', 'invalid_type');
      expect((await ask('limit=1')).status).toBe(200);
      expect((await ask('limit=1000')).status).toBe(200);
    }
    for (const wrong of ['cursor=', 'cursor=*', 'cursor=YQ==', 'cursor=_w', 'cursor=YR'])
      expectIssue(await list(wrong), 'cursor', 'invalid_cursor');
    for (const wrong of ['cursor=', cursor('a'), cursor(`x ${indexId}`), cursor('17 17')])
      expectIssue(await indexes(wrong), 'cursor', 'invalid_cursor');
    expectIssue(await list('cursor=YQ&cursor=YQ'), 'cursor', 'invalid_type');
    for (const [body, path, code] of [
      [{ limit: 0 }, 'limit', 'too_small'],
      [{ limit: 1001 }, 'limit', 'too_big'],
      [{ limit: '1' }, 'limit', 'invalid_type'],
      [{ cursor: '*' }, 'cursor', 'invalid_cursor'],
      [{ fields: ['a', 'a'] }, 'fields.1', 'duplicate'],
      [{ fields: Array.from('abcdefghijk') }, 'fields', 'too_big'],
      [{ fields: 'a' }, 'fields', 'invalid_type'],
      [{ where: 'n' }, 'where', 'invalid_type'],
      [{ filter: { n: 1 } }, 'filter', 'unrecognized_keys'],
    ] as const)
      expectIssue(await client.listMatching(indexId, body), path, code);
    expect((await client.listMatching(indexId, { limit: 1000, fields: [] })).status).toBe(200);
  });

  test('[decision-21, decision-43] a page has 100 items if nobody says', async () => {
    const tenant = await stage.newTenant();
    const { id } = await makeIndex(tenant.client);
    for (let made = 0; made < 101; made += 1) await makeIndex(tenant.client);
    const first = expectReply(await tenant.client.send('GET', '/v1/indexes?limit=1'), indexPage);
    const second = await tenant.client.send('GET', `/v1/indexes?cursor=${first.next_cursor}`);
    expect(expectReply(second, indexPage).data).toHaveLength(100);
    for (const batch of [0, 1, 2]) {
      const ids = Array.from({ length: 40 }, (_, n) => `${batch} ${n}`);
      await put(
        tenant.client,
        id,
        ids.map((doc_id) => ({ doc_id, text: 'river' })),
      );
    }
    const listed = await tenant.client.send('GET', `/v1/indexes/${id}/documents`);
    const matching = await tenant.client.listMatching(id, {});
    for (const page of [listed, matching]) expect(expectReply(page, documentPage).data).toHaveLength(100);
  });
});

describe('query parameters', () => {
  test('[decision-16] an unknown one is a 422 with its name, on every route, before the body is read', async () => {
    const { paths } = (await client.send('GET', '/openapi.json')).body as { paths: Record<string, object> };
    const routes = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => ({ method: method.toUpperCase(), path })),
    );
    const tenants = routes.filter(({ path }) => /^\/v[12]\//.test(path));
    expect(tenants.length).toBeGreaterThan(15);
    for (const { method, path } of tenants) {
      const address = `${path.replaceAll(/\{\w+\}/g, 'x')}?nonsense=1`;
      const body = method === 'GET' ? {} : { rawBody: '{"malformed' };
      expectIssue(await client.send(method, address, body), 'nonsense', 'unrecognized_keys');
    }
    // The key comes first, and an address that does not exist is 404.
    expect((await call(`${client.url}/v1/usage?nonsense=1`)).status).toBe(401);
    expectError(await client.send('GET', '/v1/nothing?nonsense=1'), 404, 'not_found');
    expect((await call(`${client.url}/healthz?nonsense=1`)).status).toBe(200);
  });

  test('[decision-16] a misspelt one is answered with the nearest name', async () => {
    const misspelt = await post(`/v1/indexes/${indexId}/documents?expire_at=2021-06-01T08:00:00Z`, {
      documents: [document()],
    });
    expectIssue(misspelt, 'expire_at', 'unrecognized_keys');
    expect(messageOf(misspelt)).toBe('expire_at: unknown parameter (did you mean expires_at?)');
    const page = await client.send('GET', '/v1/indexes?limit=1&curser=YQ');
    expect(messageOf(page)).toBe('curser: unknown parameter (did you mean cursor?)');
    expectIssue(await client.send('GET', '/v1/indexes?__proto__=1'), '__proto__', 'unrecognized_keys');
    const long = await client.send('GET', `/v1/indexes?${'n'.repeat(5_000)}=1`);
    expectIssue(long, `${'n'.repeat(64)}...`, 'unrecognized_keys');
  });
});

test('a document expires between the years 1 and 9999', async () => {
  const at = (expiresAt: string) =>
    post(`/v1/indexes/${indexId}/documents?expires_at=${encodeURIComponent(expiresAt)}`, {
      documents: [document()],
    });
  const change = (expiresAt: string) =>
    patch(`/v1/indexes/${indexId}/documents/a`, { expires_at: expiresAt });
  for (const expiresAt of [
    '9999-12-31T23:59:59-23:59',
    '9999-12-31T23:59:59.001-00:01',
    '0000-06-01T00:00:00Z',
    '0000-01-01T00:00:00+01:00',
    '0001-01-01T00:00:00+00:01',
  ]) {
    await upsert({ documents: [document()] });
    for (const reply of [await at(expiresAt), await change(expiresAt)]) {
      expectIssue(reply, 'expires_at', 'invalid');
      expect(messageOf(reply)).toBe(
        'expires_at: must be a time from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z',
      );
    }
  }
  for (const expiresAt of ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59+23:59', '0001-01-01T00:00:00Z']) {
    for (const taken of [at, change]) {
      await upsert({ documents: [document()] });
      expect((await taken(expiresAt)).status).toBe(200);
    }
  }
});

describe('updates', () => {
  test('[decision-45] an index is given a name or another index, one of the two', async () => {
    const { id } = await makeIndex(client);
    const update = (body: object) => patch(`/v1/indexes/${id}`, body);
    expectIssue(await update({}), '', 'invalid');
    expectIssue(await update({ name: 'a', swap_name_with: indexId }), '', 'invalid');
    expectIssue(await update({ name: '' }), 'name', 'too_small');
    expectIssue(await update({ name: 'x'.repeat(256) }), 'name', 'too_big');
    expectIssue(await update({ swap_name_with: 'books' }), 'swap_name_with', 'invalid_format');
    expectIssue(await update({ name: 'a', status: 'ready' }), 'status', 'unrecognized_keys');
    expect((await update({ name: 'another' })).status).toBe(200);
  });

  test('[decision-46] a document is given metadata, bounded as ever, or an expiry, and nothing else', async () => {
    await upsert({ documents: [document()] });
    const update = (body: string | object) => patch(`/v1/indexes/${indexId}/documents/a`, body);
    const missing = await update({});
    expectIssue(missing, 'metadata', 'invalid');
    expect(messageOf(missing)).toBe('metadata: must have `metadata`, `metadata_merge` or `expires_at`');
    expectIssue(await update({ metadata: [] }), 'metadata', 'invalid_type');
    expectIssue(await update({ metadata: { a: 'x'.repeat(16_384) } }), 'metadata', 'too_big');
    expectIssue(await update({ metadata: {}, text: 'other' }), 'text', 'unrecognized_keys');
    expectIssue(await update({ metadata: {}, expires_at: 'tomorrow' }), 'expires_at', 'invalid_format');
    expectIssue(await update({ expires_at: 1 }), 'expires_at', 'invalid_type');
    expectIssue(await update({ metadata: {}, metadata_merge: {} }), 'metadata_merge', 'invalid');
    expectIssue(await update({ metadata_merge: [] }), 'metadata_merge', 'invalid_type');
    expectIssue(await update('{"metadata_merge":{"a":{"b":1,"b":2}}}'), 'metadata_merge.a.b', 'duplicate');
    const merged = await update('{"metadata_merge":{"n":1.10,"a":null}}');
    expect([merged.status, merged.text]).toEqual([
      200,
      '{"doc_id":"a","metadata":{"n":1.10},"chunk_count":1}',
    ]);
    expect((await update({ expires_at: null })).status).toBe(200);
    expect((await update('{"metadata":{"n": 1.0, "__proto__":{}}}')).text).toBe(
      '{"doc_id":"a","metadata":{"n":1.0,"__proto__":{}},"chunk_count":1}',
    );
  });
});

describe('fields', () => {
  test('[upsert-documents-2, upsert-documents-4] one that is missing, unknown or of the wrong type is named by its path', async () => {
    expectIssue(await upsert({}), 'documents', 'invalid_type');
    expectIssue(await upsert({ documents: 'x' }), 'documents', 'invalid_type');
    expectIssue(await upsert({ documents: [document()], extra: 1 }), 'extra', 'unrecognized_keys');
    expectIssue(await upsert({ documents: [document({ id: 1 })] }), 'documents.0.id', 'unrecognized_keys');
    expectIssue(await upsert({ documents: [{ doc_id: 'a' }] }), 'documents.0.text', 'invalid_type');
    expectIssue(await upsert({ documents: [{ text: 'a' }] }), 'documents.0.doc_id', 'invalid_type');
    expectIssue(await upsert({ documents: [document({ text: 7 })] }), 'documents.0.text', 'invalid_type');
    expectIssue(await upsert({ documents: [document(), null] }), 'documents.1', 'invalid_type');
    expectIssue(await upsert('{"__proto__":{"documents":[]}}'), '__proto__', 'unrecognized_keys');
    expectIssue(await search({ query: 'q', return_components: 'yes' }), 'return_components', 'invalid_type');
    expectIssue(await search({ query: 'q', limit: 1 }), 'limit', 'unrecognized_keys');
  });

  test('[errors-6] a million wrong items are one issue, and at most 100 issues are reported, with keys cut short', async () => {
    const many = await upsert(`{"documents":[${'0,'.repeat(1_000_000)}0]}`);
    expectIssue(many, 'documents', 'too_big');
    expect(expectInvalid(many).issues).toHaveLength(1);
    const keys = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`${at}${'k'.repeat(200)}`, 1]));
    const { issues = [] } = expectInvalid(await upsert(keys));
    expect(issues).toHaveLength(100);
    expect(Math.max(...issues.map((issue) => issue.path.length))).toBeLessThanOrEqual(67);
  });

  test('[document-input-1, document-input-2] half a character has no place in a `doc_id`, and reads as U+FFFD in a text', async () => {
    const { id } = await makeIndex(client);
    const half = '{"documents":[{"doc_id":"a","text":"x\\ud83d"},{"doc_id":"b","text":"x\\ufffd"}]}';
    expect((await post(`/v1/indexes/${id}/documents`, half)).status).toBe(200);
    const [first, second] = (await find(client, id, { query: 'x' })).results;
    expect(first?.score).toBe(second?.score);
    expectIssue(
      await upsert('{"documents":[{"doc_id":"a\\udc00","text":"x"}]}'),
      'documents.0.doc_id',
      'invalid_unicode',
    );
  });

  test('[index-1] an identifier is read in either case on every route, and in bodies (RFC 9562 section 4)', async () => {
    const [{ id, name }, other] = [await makeIndex(client), await makeIndex(client)];
    const address = `/v1/indexes/${id.toUpperCase()}`;
    for (const [method, path, body, expected] of [
      ['GET', address, undefined, { id }],
      ['PATCH', address, { swap_name_with: other.id.toUpperCase() }, { id, name: other.name }],
      ['POST', `${address}/documents`, { documents: [{ doc_id: 'A', text: 't' }] }, { index_id: id }],
      ['GET', `${address}/documents`, undefined, { data: [{ doc_id: 'A' }] }],
      ['GET', `${address}/count`, undefined, { documents: 1 }],
      ['POST', `${address}/search`, { query: 't' }, { results: [{ doc_id: 'A' }] }],
      ['POST', `${address}/query`, { queries: [{ query: 't' }] }, {}],
      ['DELETE', `${address}/documents/A`, undefined, { deleted: true }],
      ['DELETE', address, undefined, { deleted: true }],
    ] as const) {
      const reply = await client.send(method, path, body && { body });
      expect([method, path, reply.status]).toEqual([method, path, 200]);
      expect(reply.body).toMatchObject(expected);
    }
    expect((await client.send('GET', `/v1/indexes/${other.id}`)).body).toMatchObject({ name });
  });

  test('[index-2, index-11, decision-2] the name of an index has 1 to 255 characters, and unknown properties are refused', async () => {
    expectIssue(await create({}), 'name', 'invalid_type');
    expectIssue(await create({ name: '' }), 'name', 'too_small');
    expect((await create({ name: 'é'.repeat(255) })).status).toBe(201);
    expectIssue(await create({ name: 'n'.repeat(256) }), 'name', 'too_big');
    expectIssue(await create({ name: 'n', model: '' }), 'model', 'too_small');
    expectIssue(await create({ name: 'n', status: 'ready' }), 'status', 'unrecognized_keys');
    expectIssue(await create({ name: 'n', chunking: { size: 1 } }), 'chunking.size', 'unrecognized_keys');
    expectIssue(await create({ name: 'n', text_retention: 'all' }), 'text_retention', 'invalid_value');
    expectIssue(await create({ name: 'n', chunking: { max_tokens: 0 } }), 'chunking.max_tokens', 'too_small');
  });
});

describe('bodies', () => {
  test('[decision-16] nested a hundred thousand deep, or with a name twice in one object, they are a 422', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expectIssue(await search(`{"query":${deep}}`), 'query', 'too_deep');
    expectIssue(await search(`{"query":"q","filter":{"a":${deep}}}`), 'filter', 'too_deep');
    const inDocument = (metadata: string) =>
      upsert(`{"documents":[{"doc_id":"a","text":"t","metadata":${metadata}}]}`);
    expectIssue(await inDocument(`{"a":${deep}}`), 'documents.0.metadata', 'too_deep');
    expectIssue(await search('{"query":"first","query":"last"}'), 'query', 'duplicate');
    const where = '{"tags":{"contains":"a","contains":"b"}}';
    expectIssue(await search(`{"query":"q","where":${where}}`), 'where.tags.contains', 'duplicate');
    expectIssue(await inDocument('{"a":{"b":1,"b":1}}'), 'documents.0.metadata.a.b', 'duplicate');
  });

  test('[endpoints-2] they are JSON in UTF-8, and may begin with a byte order mark', async () => {
    expect((await search('\uFEFF{"query":"q"}')).status).toBe(200);
    const typed = (headers: Readonly<Record<string, string>>) =>
      client.send('POST', `/v1/indexes/${indexId}/search`, { rawBody: '{"query":"q"}', headers });
    for (const headers of [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'application/jsonx' },
      { 'content-type': 'nonsense' },
      { 'content-type': 'application/json; charset=latin1' },
      { 'content-type': 'application/json; charset=utf-16' },
      { 'content-type': 'application/json', 'content-encoding': 'br' },
    ])
      expectError(await typed(headers), 415, 'validation_error');
    for (const type of [
      'application/json; charset=utf-8',
      'application/json;charset="UTF-8"',
      'application/json; charset=utf8',
      'application/json; charset=UTF8',
      'application/json; charset="Utf8"',
      'application/json; charset=us-ascii',
      'application/json;charset=US-ASCII',
      'APPLICATION/JSON',
    ])
      expect([type, (await typed({ 'content-type': type })).status]).toEqual([type, 200]);
  });
});

test('[errors-16] the message says where, what is wrong, and what would be right', async () => {
  for (const [send, body, message] of [
    [search, {}, 'query: is required'],
    [search, { query: 7 }, 'query: must be a string, not number'],
    [search, { query: 'q', top_k: '3' }, 'top_k: must be a number, not string'],
    [search, { query: 'q', top_k: 1.5 }, 'top_k: must be a whole number'],
    [search, { query: 'q', top_k: 1000 }, 'top_k: must be at most 100'],
    [search, { query: 'q', top_k: 0 }, 'top_k: must be at least 1'],
    [search, { query: 'q', topk: 3 }, 'topk: unknown property'],
    [
      search,
      { query: 'q', return_components: 'yes' },
      'return_components: must be true or false, not string',
    ],
    [upsert, { documents: [] }, 'documents: must have at least 1 item'],
    [upsert, { documents: 'text' }, 'documents: must be an array, not string'],
    [upsert, { documents: ['text'] }, 'documents.0: must be an object, not string'],
    [upsert, { documents: [{ text: 'x' }] }, 'documents.0.doc_id: is required'],
    [search, "{'query':'q'}", 'the body is not valid JSON: see line 1, column 2'],
    [search, '{"query":', 'the body is not valid JSON: it ends too early'],
    [search, '{"query":\n  "é\t"}', 'the body is not valid JSON: see line 2, column 5'],
  ] as const)
    expect(messageOf(await send(body))).toBe(message);
  expect(messageOf(await client.send('GET', '/v1/indexes?limit=abc'))).toBe(
    'limit: must be a whole number from 1 to 1000',
  );
  expect(messageOf(await post('/v1/indexes/first/search', { query: 'q' }))).toBe(
    'index_id: must be the id of an index, a UUID, or name: and the name of one',
  );
});
