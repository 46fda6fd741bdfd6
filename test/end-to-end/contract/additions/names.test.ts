/** Names in addresses: `name:NAME` in place of the id of an index, on every route. Creating an index unless it exists. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';

import {
  expectError,
  expectInvalid,
  expectReply,
  type Client,
  type Reply,
} from '../../../support/running/client.ts';
import { readOpenApi } from '../../../support/running/openapi.ts';
import { find, makeIndex, put } from '../../../support/running/requests.ts';
import { routesOf } from '../../../support/running/routes.ts';
import { index, indexList, upserted } from '../../../support/running/wire.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';

const stage = await useContractStage();
const byName = (name: string): string => encodeURIComponent(`name:${name}`);
const anId = '5f3c0d5e-9d0a-4f8e-8a53-7d9e0c1b2a34';

interface Asked {
  readonly body?: unknown;
  /** A part of the answer. */
  readonly answer: object;
}

/** All routes with an index in their path, in an order in which each succeeds. The index has the document `bee`. */
const asked: Readonly<Record<string, Asked>> = {
  'POST /documents': {
    body: { documents: [{ doc_id: 'ant', text: 'ants follow trails', metadata: { kind: 'insect' } }] },
    answer: { upserted_documents: 1 },
  },
  'GET ': { answer: { recall: null } },
  'GET /count': { answer: { documents: 2, chunks: 2 } },
  'GET /documents': { answer: { data: [{ doc_id: 'ant' }, { doc_id: 'bee' }] } },
  'POST /documents/list': {
    body: { where: { kind: 'insect' } },
    answer: { data: [{ doc_id: 'ant' }, { doc_id: 'bee' }] },
  },
  'POST /facets': { body: { fields: ['kind'] }, answer: { documents: 2 } },
  'GET /documents/{doc_id}': { answer: { doc_id: 'bee' } },
  'PATCH /documents/{doc_id}': {
    body: { metadata: { kind: 'bee' } },
    answer: { doc_id: 'bee', metadata: { kind: 'bee' } },
  },
  'POST /search': {
    body: { query: 'ants', filter: { kind: 'bee' } },
    answer: { results: [{ doc_id: 'bee' }] },
  },
  'POST /query': {
    body: { queries: [{ query: 'ants', filter: { kind: 'bee' } }] },
    answer: { results: [{ results: [{ doc_id: 'bee' }] }] },
  },
  'POST /documents/delete': { body: { where: { kind: 'insect' } }, answer: { deleted: 1 } },
  'DELETE /documents/{doc_id}': { answer: { deleted: true } },
  'DELETE ': { answer: { deleted: true } },
};

function ask(client: Client, address: string, route: string, { body }: Pick<Asked, 'body'>): Promise<Reply> {
  const [method = '', rest = ''] = route.split(' ');
  const path = `/v1/indexes/${address}${rest.replace('{doc_id}', 'bee')}`;
  return client.send(method, path, body === undefined ? {} : { body });
}

const bee = { doc_id: 'bee', text: 'bees dance', metadata: { kind: 'insect' } };

describe('The name of an index in an address', () => {
  test('the table has every route that the service describes', async () => {
    const prefix = '/v1/indexes/{index_id}';
    const described = routesOf(await readOpenApi(stage.server.url))
      .filter(({ path }) => path.startsWith(prefix))
      .map(({ method, path }) => `${method} ${path.slice(prefix.length)}`);
    // The tests of names below rename and swap.
    expect(new Set(described)).toEqual(new Set([...Object.keys(asked), 'PATCH ']));
  });

  test.each([
    'handbook',
    'of 2026/a/b',
    '100%',
    '%2F %25',
    'Bücher & 書籍 📚',
    'name:',
    'name:handbook',
    `a?b#c;d=e+f "g" \\ h\0`,
    ' ',
    '..',
    anId,
    '📚'.repeat(255),
  ])('finds %j on every route', async (name) => {
    const { client } = await stage.newTenant();
    const { id } = await makeIndex(client, { name });
    await put(client, id, [bee]);
    for (const [route, each] of Object.entries(asked)) {
      const reply = await ask(client, byName(name), route, each);
      expect({ route, status: reply.status, body: reply.body }).toMatchObject({
        route,
        status: 200,
        body: each.answer,
      });
    }
    expectError(await client.send('GET', `/v1/indexes/${id}`), 404, 'not_found');
  });

  test('is read as it is written, however it is encoded', async () => {
    const { client } = await stage.newTenant();
    const { id } = await makeIndex(client, { name: 'a/ü+' });
    for (const address of ['name:a%2F%C3%BC+', 'name%3aa%2f%c3%bc%2b', '%6eame:%61%2Fü+'])
      expect(expectReply(await client.send('GET', `/v1/indexes/${address}`), index).id).toBe(id);
    for (const address of ['name:a%252F%C3%BC+', 'name:A%2F%C3%BC+', 'name:a%2Fu%CC%88+'])
      expectError(await client.send('GET', `/v1/indexes/${address}`), 404, 'not_found');
    expectError(await client.send('GET', '/v1/indexes/name:a/ü+'), 404, 'not_found');
  });

  test('means the id in answers, and an index that is called like the id of another is not taken for it', async () => {
    const { client } = await stage.newTenant();
    const other = await makeIndex(client, { name: 'other' });
    const { id } = await makeIndex(client, { name: other.id });
    const stored = expectReply(await client.upsert(byName(other.id), [bee]), upserted);
    expect(stored.index_id).toBe(id);
    expect((await find(client, id, { query: 'bees' })).results).toHaveLength(1);
    expect((await find(client, other.id, { query: 'bees' })).results).toEqual([]);
  });

  test('of nobody, or of another tenant, is 404 as an unknown id is', async () => {
    const { client } = await stage.newTenant();
    const stranger = await stage.newTenant();
    const { id, name } = await makeIndex(client, { name: 'mine' });
    await put(client, id, [bee]);
    const routes = { ...asked, 'PATCH ': { body: { name: 'yours' } } };
    for (const [route, each] of Object.entries(routes)) {
      const unknownId = await ask(stranger.client, randomUUID(), route, each);
      expectError(unknownId, 404, 'not_found');
      for (const wanted of [name, 'of nobody']) {
        const reply = await ask(stranger.client, byName(wanted), route, each);
        expect([route, reply.status, reply.body]).toEqual([route, 404, unknownId.body]);
      }
    }
    expect(expectReply(await client.send('GET', `/v1/indexes/${byName(name)}`), index).id).toBe(id);
    const body = { swap_name_with: 'name:mine' };
    await makeIndex(stranger.client, { name: 'theirs' });
    expectError(await stranger.client.send('PATCH', '/v1/indexes/name:theirs', { body }), 404, 'not_found');
  });

  test('is refused where it can be none, before the index is looked for', async () => {
    const { client } = stage;
    for (const address of ['name:', `name:${'a'.repeat(256)}`, 'NAME:a', 'name', 'id:a', 'name%'])
      expectInvalid(await client.search(address.replace('%', '%25'), { query: 'q' }), 'index_id');
    // The body is checked before the name is looked for, as it is before an id is.
    expectInvalid(await client.search(byName('of nobody'), { query: '' }), 'query');
  });

  test('belongs to the other index in the next request after a swap, and to none after a rename', async () => {
    const { client } = await stage.newTenant();
    const old = await makeIndex(client, { name: 'live/index' });
    const next = await makeIndex(client, { name: 'next' });
    await put(client, old.id, [{ doc_id: 'old', text: 'river' }]);
    await put(client, next.id, [{ doc_id: 'next', text: 'river' }]);
    const found = async () =>
      (await find(client, byName('live/index'), { query: 'river' })).results.map(
        ({ doc_id: docId }) => docId,
      );
    for (const expected of ['next', 'old', 'next', 'old']) {
      const body = { swap_name_with: 'name:next' };
      const swapped = expectReply(
        await client.send('PATCH', `/v1/indexes/${byName('live/index')}`, { body }),
        index,
      );
      expect(swapped.name).toBe('next');
      expect(await found()).toEqual([expected]);
    }
    const itself = { swap_name_with: 'name:next' };
    expectInvalid(await client.send('PATCH', `/v1/indexes/${next.id}`, { body: itself }), 'swap_name_with');
    const body = { name: 'last' };
    expectReply(await client.send('PATCH', `/v1/indexes/${byName('live/index')}`, { body }), index);
    expectError(await client.search(byName('live/index'), { query: 'river' }), 404, 'not_found');
    expect((await find(client, byName('last'), { query: 'river' })).results).toHaveLength(1);
  });

  test('of an index that was deleted is free for another', async () => {
    const { client } = await stage.newTenant();
    for (const docId of ['first', 'second']) {
      await makeIndex(client, { name: 'again' });
      await put(client, byName('again'), [{ doc_id: docId, text: 'river' }]);
      const { results } = await find(client, byName('again'), { query: 'river' });
      expect(results.map(({ doc_id: id }) => id)).toEqual([docId]);
      expect((await client.send('DELETE', `/v1/indexes/${byName('again')}`)).status).toBe(200);
    }
  });
});

describe('if_exists', () => {
  const chunking = { max_tokens: 64, overlap_tokens: 8, minimum_chunk_tokens: 4 };
  const schema = { kind: 'string', year: { minimum: 1900, maximum: 1e2 } };

  test('creates an index, and returns it afterwards with its address', async () => {
    const { client } = await stage.newTenant();
    const body = { name: 'once', if_exists: 'return', chunking, metadata_schema: schema };
    const made = expectReply(await client.createIndex(body), index, 201);
    const { model, model_version: version } = made;
    const sameSchema = { year: { maximum: 100, minimum: 1900 }, kind: 'string' };
    for (const given of [
      { name: 'once' },
      body,
      { name: 'once', model, model_version: version, text_retention: 'none' },
      { name: 'once', chunking: { overlap_tokens: 8 }, metadata_schema: sameSchema },
    ]) {
      const reply = await client.createIndex({ ...given, if_exists: 'return' });
      expect(expectReply(reply, index, 200)).toEqual(made);
      expect(reply.headers.get('location')).toBe(`indexes/${made.id}`);
    }
    expect(expectReply(await client.listIndexes(), indexList).data).toEqual([made]);
  });

  test('names each field that the index has otherwise, and changes nothing', async () => {
    const { client } = await stage.newTenant();
    const made = expectReply(
      await client.createIndex({ name: 'once', chunking, metadata_schema: schema }),
      index,
      201,
    );
    for (const [given, paths] of [
      [{ model: 'another' }, ['model']],
      [{ model_version: 'another' }, ['model_version']],
      [
        { chunking: { max_tokens: 65, overlap_tokens: 8, minimum_chunk_tokens: 5 } },
        ['chunking.max_tokens', 'chunking.minimum_chunk_tokens'],
      ],
      [{ metadata_schema: {} }, ['metadata_schema']],
      [{ metadata_schema: { ...schema, kind: 'number' } }, ['metadata_schema']],
    ] as const) {
      const reply = await client.createIndex({ name: 'once', ...given, if_exists: 'return' });
      const { issues } = expectInvalid(reply, paths[0]);
      expect(issues?.map(({ path }) => path)).toEqual(paths);
    }
    expectInvalid(await client.createIndex({ name: 'once' }), 'name');
    for (const wrong of ['Return', 'error', true, 1])
      expectInvalid(await client.createIndex({ name: 'once', if_exists: wrong }), 'if_exists');
    expect(expectReply(await client.listIndexes(), indexList).data).toEqual([made]);
  });

  test('answers all of many callers at once with one index', async () => {
    const { client } = await stage.newTenant();
    const body = { name: 'wanted by many', if_exists: 'return' };
    const replies = await Promise.all(Array.from({ length: 12 }, () => client.createIndex(body)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(11);
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    const ids = new Set(replies.map((reply) => index.parse(reply.body).id));
    expect([...ids]).toEqual(expectReply(await client.listIndexes(), indexList).data.map(({ id }) => id));
  });
});
