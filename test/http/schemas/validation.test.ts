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
const score = (payload: string | object) => post('/v1/score', payload);
const create = (payload: string | object) => post('/v1/indexes', payload);
const remove = (docId: string) =>
  http.inject({ method: 'DELETE', url: `/v1/indexes/${indexId}/documents/${docId}` });

const document = (fields: object = {}) => ({ doc_id: 'a', text: 'some text', ...fields });
const documents = (count: number) => Array.from({ length: count }, (_, at) => document({ doc_id: `d${at}` }));

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

  test('of documents take no other parameter; the list of indexes ignores what it does not know, as ever', async () => {
    expectIssue(await list('curser=YQ'), 'curser', 'unrecognized_keys');
    expect(Object.keys((await indexes('curser=YQ')).json())).toEqual(['data']);
  });
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
    expect(missing.json<ErrorAnswer>().error.message).toBe('metadata: must have `metadata` or `expires_at`');
    expectIssue(await update({ metadata: [] }), 'metadata', 'invalid_type');
    expectIssue(await update({ metadata: { a: 'x'.repeat(16_384) } }), 'metadata', 'too_big');
    expectIssue(await update({ metadata: {}, text: 'other' }), 'text', 'unrecognized_keys');
    expectIssue(await update({ metadata: {}, expires_at: 'tomorrow' }), 'expires_at', 'invalid_format');
    expectIssue(await update({ expires_at: 1 }), 'expires_at', 'invalid_type');
    expect((await update({ expires_at: null })).statusCode).toBe(200);
    expect((await update('{"metadata":{"n": 1.0, "__proto__":{}}}')).body).toBe(
      '{"doc_id":"a","metadata":{"n":1.0,"__proto__":{}},"chunk_count":1}',
    );
  });
});

describe('documents', () => {
  test('1 and 50 of them pass, 0 and 51 do not', async () => {
    expect((await upsert({ documents: documents(1) })).statusCode).toBe(200);
    expect((await upsert({ documents: documents(50) })).statusCode).toBe(200);
    expectIssue(await upsert({ documents: [] }), 'documents', 'too_small');
    expectIssue(await upsert({ documents: documents(51) }), 'documents', 'too_big');
    expect((await score({ query: 'q', documents: documents(50) })).statusCode).toBe(200);
    expectIssue(await score({ query: 'q', documents: documents(51) }), 'documents', 'too_big');
  });

  test('a million wrong items are refused without looking at each', async () => {
    const response = await upsert(`{"documents":[${'0,'.repeat(1_000_000)}0]}`);
    expectIssue(response, 'documents', 'too_big');
    expect(response.json<ErrorAnswer>().error.issues).toHaveLength(1);
  });

  test('the same doc_id twice names the second one', async () => {
    const payload = { documents: [document(), document({ doc_id: 'b' }), document()] };
    expectIssue(await upsert(payload), 'documents.2.doc_id', 'duplicate');
    expectIssue(await score({ query: 'q', ...payload }), 'documents.2.doc_id', 'duplicate');
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

  test('text of 100 KiB as UTF-8 passes, one byte more does not', async () => {
    const euros = '€'.repeat(Math.floor((100 * 1024) / 3));
    const text = `${euros}${'x'.repeat(100 * 1024 - 3 * euros.length)}`;
    expect((await upsert({ documents: [document({ text })] })).statusCode).toBe(200);
    expectIssue(await upsert({ documents: [document({ text: `${text}x` })] }), 'documents.0.text', 'too_big');
    expectIssue(await upsert({ documents: [document({ text: '' })] }), 'documents.0.text', 'too_small');
  });

  test('half a character in a text reads as U+FFFD', async () => {
    expect((await upsert('{"documents":[{"doc_id":"a","text":"x\\ud83d"}]}')).statusCode).toBe(200);
    expect(lastCall('upsertDocuments').arguments[1]).toMatchObject([{ text: 'x\uFFFD' }]);
  });
});

describe('doc_id', () => {
  test('255 code points pass, 256 do not, whatever their length in UTF-16', async () => {
    for (const character of ['a', 'é', '中', '😀']) {
      const id = character.repeat(255);
      expect((await upsert({ documents: [document({ doc_id: id })] })).statusCode).toBe(200);
      expect((await remove(encodeURIComponent(id))).json()).toEqual({ deleted: true });
      expectIssue(
        await upsert({ documents: [document({ doc_id: id + character })] }),
        'documents.0.doc_id',
        'too_big',
      );
    }
    expectIssue(await upsert({ documents: [document({ doc_id: '' })] }), 'documents.0.doc_id', 'too_small');
  });

  test('"." and ".." are refused, "..." is not', async () => {
    for (const id of ['.', '..']) {
      expectIssue(await upsert({ documents: [document({ doc_id: id })] }), 'documents.0.doc_id', 'reserved');
    }
    expect((await upsert({ documents: [document({ doc_id: '...' })] })).statusCode).toBe(200);
  });

  test('a lone surrogate is refused: it has no address', async () => {
    expectIssue(
      await upsert('{"documents":[{"doc_id":"a\\udc00","text":"x"}]}'),
      'documents.0.doc_id',
      'invalid_unicode',
    );
  });

  test('reserved characters survive the path', async () => {
    for (const id of [
      'a/b',
      'a%2Fb',
      '100%',
      'q?x=1',
      '#1',
      'a b+c',
      ';v',
      'ü/ö',
      '\u0000\n',
      '%',
      '://x',
      'a\\b',
    ]) {
      await remove(encodeURIComponent(id));
      expect(lastCall('deleteDocument').arguments[1]).toBe(id);
    }
  });

  test('256 code points in the path are a 422, a path no id could need is a 414', async () => {
    expectIssue(await remove('a'.repeat(256)), 'doc_id', 'too_big');
    const response = await remove('a'.repeat(3061));
    expect(response.statusCode).toBe(414);
    expect(response.json<ErrorAnswer>().error.code).toBe('validation_error');
    expect(response.headers['x-request-id']).toBeTruthy();
  });
});

describe('index_id', () => {
  test('anything but a UUID is a 422 on every route', async () => {
    for (const [method, url] of [
      ['GET', '/v1/indexes/x'],
      ['DELETE', '/v1/indexes/x'],
      ['POST', '/v1/indexes/x/documents'],
      ['POST', '/v1/indexes/x/search'],
      ['DELETE', '/v1/indexes/x/documents/y'],
    ] as const) {
      const payload = method === 'POST' ? { payload: {} } : {};
      expectIssue(await http.inject({ method, url, ...payload }), 'index_id', 'invalid_format');
    }
  });

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
  test('query of 8 KiB passes, one byte more and an empty one do not', async () => {
    const query = '€'.repeat(2730) + 'xx';
    expect(Buffer.byteLength(query)).toBe(8192);
    expect((await search({ query })).statusCode).toBe(200);
    expectIssue(await search({ query: `${query}x` }), 'query', 'too_big');
    expectIssue(await search({ query: '' }), 'query', 'too_small');
    expectIssue(await search({}), 'query', 'invalid_type');
    expectIssue(await score({ query: `${query}x`, documents: documents(1) }), 'query', 'too_big');
  });

  test('top_k is an integer of 1 to 100, candidate_k of 1 to 500', async () => {
    for (const [name, max] of [
      ['top_k', 100],
      ['candidate_k', 500],
    ] as const) {
      expect((await search({ query: 'q', [name]: 1 })).statusCode).toBe(200);
      expect((await search({ query: 'q', [name]: max })).statusCode).toBe(200);
      expectIssue(await search({ query: 'q', [name]: 0 }), name, 'too_small');
      expectIssue(await search({ query: 'q', [name]: max + 1 }), name, 'too_big');
      expectIssue(await search({ query: 'q', [name]: '5' }), name, 'invalid_type');
      expectIssue(await search({ query: 'q', [name]: 1.5 }), name, 'invalid_type');
      expectIssue(await search({ query: 'q', [name]: null }), name, 'invalid_type');
    }
  });

  test('16 filter fields pass, 17 do not', async () => {
    const filter = (fields: number) =>
      Object.fromEntries(Array.from({ length: fields }, (_, at) => [`f${at}`, at]));
    expect((await search({ query: 'q', filter: filter(16) })).statusCode).toBe(200);
    expect((await search({ query: 'q', filter: {} })).statusCode).toBe(200);
    expectIssue(await search({ query: 'q', filter: filter(17) }), 'filter', 'too_big');
    for (const wrong of [[], null, 'x', 1]) {
      expectIssue(await search({ query: 'q', filter: wrong }), 'filter', 'invalid_type');
    }
  });

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

  test('answers 201 with Location and the fields in the order of the specification', async () => {
    const response = await create({
      name: 'books',
      model: 'test-model',
      text_retention: 'none',
      metadata_schema: { title: 'string' },
      chunking: { max_tokens: 128 },
    });
    expect(response.statusCode).toBe(201);
    const index = response.json<Record<string, unknown>>();
    expect(response.headers['location']).toBe(`/v1/indexes/${String(index['id'])}`);
    expect(Object.keys(index)).toEqual([
      'id',
      'name',
      'model',
      'model_version',
      'text_retention',
      'chunking',
      'metadata_schema',
      'status',
      'created_at',
    ]);
    expect(index).toMatchObject({
      text_retention: 'none',
      chunking: { strategy: 'token_window', max_tokens: 128, overlap_tokens: 32, minimum_chunk_tokens: 16 },
      metadata_schema: { title: 'string' },
      created_at: '2026-01-02T03:04:05.006Z',
    });
    const { body } = await http.inject({ url: String(response.headers['location']) });
    expect(JSON.parse(body)).toEqual({ ...index, recall: null });
  });
});

describe('bodies', () => {
  test('of exactly 5 MiB pass, one byte more is a 413', async () => {
    const filled = (bytes: number) => `{"documents":[],"x":"${'y'.repeat(bytes - 23)}"}`;
    expect(filled(100)).toHaveLength(100);
    expectIssue(await upsert(filled(5 * 1024 * 1024)), 'x', 'unrecognized_keys');
    const response = await upsert(filled(5 * 1024 * 1024 + 1));
    expect(response.statusCode).toBe(413);
    expect(response.json<ErrorAnswer>().error.code).toBe('validation_error');
  });

  test('that are not JSON, not an object, empty or not UTF-8 are a 422', async () => {
    for (const text of ['{', '{"query":"q"', 'nonsense', "{'query':'q'}", '{"query":"q"}x']) {
      expectIssue(await search(text), '', 'invalid_json');
    }
    for (const text of ['[]', '"q"', '1', 'null', '']) expectIssue(await search(text), '', 'invalid_type');
    const response = await http.inject({
      method: 'POST',
      url: `/v1/indexes/${indexId}/search`,
      headers: { 'content-type': 'application/json' },
      payload: Buffer.from([0x22, 0xff, 0x22]),
    });
    expectIssue(response, '', 'invalid_json');
  });

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

  test('of a key given twice the last value counts', async () => {
    expect((await search('{"query":"first","query":"last"}')).statusCode).toBe(200);
    expect(lastCall('search').arguments[1]).toMatchObject({ query: 'last' });
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

  test('may be missing on DELETE, with or without a JSON content type', async () => {
    const headers = { 'content-type': 'application/json' };
    const url = `/v1/indexes/${indexId}/documents/gone`;
    expect((await http.inject({ method: 'DELETE', url, headers })).json()).toEqual({ deleted: false });
    expect((await http.inject({ method: 'DELETE', url })).json()).toEqual({ deleted: false });
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
    expect(response.json<ErrorAnswer>().error.message).toBe('index_id: must be a UUID');
  });
});
