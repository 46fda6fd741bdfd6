/** The Index resource, its states, "Create an index" and "List indexes". */
import { randomUUID } from 'node:crypto';

import { describe, expect, test } from 'vitest';

import { expectError, expectInvalid, expectReply } from '../../support/running/client.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { deleted, index, indexList, indexPage, type Index } from '../../support/running/wire.ts';

const stage = await useContractStage();
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

describe('Index', () => {
  test('[index-1] `id` | string, UUID | Tenant-scoped identifier; used as `{index_id}` in paths.', async () => {
    const { client } = stage;
    const made = await makeIndex(client);
    expect(made.id).toMatch(uuid);
    expect((await find(client, made.id, { query: 'river' })).results).toEqual([]);
    const other = await stage.newTenant();
    expectError(await other.client.search(made.id, { query: 'river' }), 404, 'not_found');
  });

  test('[index-2] `name` | string, min length 1 | Human-readable; unique within the tenant.', async () => {
    const { client } = stage;
    expectInvalid(await client.createIndex({ name: '' }), 'name');
    for (const name of ['x', 'Bücher & Zeitschriften / 書籍 📚', "o'; DROP TABLE indexes; --", '__proto__']) {
      expect(expectReply(await client.createIndex({ name }), index, 201).name).toBe(name);
      expectInvalid(await client.createIndex({ name }), 'name');
    }
  });

  test('[index-3] `model` | string, min length 1 | Model name. Immutable.', async () => {
    const made = await makeIndex(stage.client);
    expect(made.model).toBe(stage.server.readyLine.model);
  });

  test('[index-4] `model_version` | string, min length 1 | Immutable serving version of this index. Moving to another version means creating a new index and re-ingesting.', async () => {
    const made = await makeIndex(stage.client);
    expect(made.model_version).toBe(stage.server.readyLine.model_version);
    // An addition of ours: a version may be named, where it is installed.
    const chosen = await makeIndex(stage.client, { model_version: made.model_version });
    expect(chosen.model_version).toBe(made.model_version);
    const unknown = { name: 'of no version', model_version: `${made.model_version}-other` };
    expectInvalid(await stage.client.createIndex(unknown), 'model_version');
  });

  test('[index-6] `chunking` | object | `strategy` (string, value `token_window`), `max_tokens` (integer), `overlap_tokens` (integer), `minimum_chunk_tokens` (integer).', async () => {
    const { client } = stage;
    const chunking = { max_tokens: 40, overlap_tokens: 4, minimum_chunk_tokens: 8 };
    const made = await makeIndex(client, { chunking });
    expect(made.chunking).toEqual({ strategy: 'token_window', ...chunking });
    const listed = expectReply(await client.listIndexes(), indexList).data.find((one) => one.id === made.id);
    expect(listed).toEqual(made);
  });

  test('[index-7] `metadata_schema` | object | Descriptive customer metadata schema recorded with the index.', async () => {
    const { client } = stage;
    const schemas: readonly Readonly<Record<string, unknown>>[] = [
      {},
      {
        source: 'string',
        year: { type: 'integer', minimum: 1900 },
        tags: ['a', null, 1.5, { deep: [true] }],
      },
      { ключ: 'значение', '': 'empty name', constructor: 'data' },
    ];
    for (const schema of schemas) {
      const made = await makeIndex(client, { metadata_schema: schema });
      expect(made.metadata_schema).toEqual(schema);
      const listed = expectReply(await client.listIndexes(), indexList).data.find(
        (one) => one.id === made.id,
      );
      expect(listed?.metadata_schema).toEqual(schema);
    }
    // Descriptive: it constrains no document.
    const made = await makeIndex(client, { metadata_schema: { year: 'integer' } });
    await put(client, made.id, [
      { doc_id: 'one', text: 'river', metadata: { year: 'not a number', more: 1 } },
    ]);
  });

  test('[index-8, states-and-transitions-1] `status` | string enum: `creating`, `ready`, `error`. A newly created index is returned with a status; the shown creation response has `ready`.', async () => {
    const made = await makeIndex(stage.client);
    expect(made.status).toBe('ready');
  });

  test('[states-and-transitions-2] Transitions: not shown.', async () => {
    // An index that is ready stays ready through use.
    const { client } = stage;
    const made = await makeIndex(client);
    await put(client, made.id, [{ doc_id: 'one', text: 'river' }]);
    await client.deleteDocument(made.id, 'one');
    const reply = expectReply(await client.send('GET', `/v1/indexes/${made.id}`), index);
    expect(reply).toEqual({ ...made, recall: null });
  });

  test('[index-9, conventions-4] `created_at` | string, ISO 8601 UTC timestamp', async () => {
    const before = Date.now();
    const made = await makeIndex(stage.client);
    const created = Date.parse(made.created_at);
    expect(created).toBeGreaterThanOrEqual(before - 1);
    expect(created).toBeLessThanOrEqual(Date.now());
  });
});

describe('Create an index', () => {
  test('[create-an-index-2, decision-1] `POST /v1/indexes` Response: an Index object. 201 with `Location`', async () => {
    const reply = await stage.client.createIndex({ name: 'has a location' });
    const made = expectReply(reply, index, 201);
    const location = reply.headers.get('location') ?? '';
    expect(new URL(location, `${stage.server.url}/v1/indexes`).pathname).toBe(`/v1/indexes/${made.id}`);
    expect(expectReply(await stage.client.send('GET', `/v1/indexes/${made.id}`), index)).toEqual({
      ...made,
      recall: null,
    });
  });

  test('[create-an-index-1, decision-14] Request: see the create-index request fields under Resources. `name` is required and must be unique within the tenant. duplicate index name is 422 `validation_error`, issue path `name`', async () => {
    const { client } = stage;
    expectInvalid(await client.createIndex({}), 'name');
    for (const name of [null, 7, [], {}, true]) expectInvalid(await client.createIndex({ name }), 'name');
    expectReply(await client.createIndex({ name: 'only one' }), index, 201);
    const { issues } = expectInvalid(await client.createIndex({ name: 'only one' }), 'name');
    expect(issues?.map((issue) => issue.path)).toEqual(['name']);
    const other = await stage.newTenant();
    expectReply(await other.client.createIndex({ name: 'only one' }), index, 201);
  });

  test('[index-10, index-14, decision-19] `model` (optional; omit unless explicitly instructed to select a supported model during onboarding). Allowed values of `model`: not shown. unknown `model` 422', async () => {
    const { client, server } = stage;
    const named = await makeIndex(client, { model: server.readyLine.model });
    expect(named.model).toBe(server.readyLine.model);
    for (const model of ['no-such-model', '', '../../etc', 7]) {
      expectInvalid(await client.createIndex({ name: 'of another model', model }), 'model');
    }
  });

  test('[index-11, index-5, what-the-service-does-13] `text_retention` (enum `none`), `metadata_schema` (object, descriptive), and one further nested object whose child attributes are not listed.', async () => {
    const { client } = stage;
    const made = await makeIndex(client, {
      text_retention: 'none',
      metadata_schema: { a: 1 },
      chunking: { max_tokens: 64, overlap_tokens: 0, minimum_chunk_tokens: 1 },
    });
    expect(made.chunking).toMatchObject({ max_tokens: 64, overlap_tokens: 0, minimum_chunk_tokens: 1 });
    expect(made.text_retention).toBe('none');
    expect((await makeIndex(client)).text_retention).toBe('none');
    for (const value of ['full', 'None', '', true, 0])
      expectInvalid(
        await client.createIndex({ name: 'keeps text', text_retention: value }),
        'text_retention',
      );
    for (const schema of [[], 'text', 7, true]) {
      expectInvalid(
        await client.createIndex({ name: 'bad schema', metadata_schema: schema }),
        'metadata_schema',
      );
    }
  });

  test('[decision-2] Fields of the create-index request’s nested object: not shown. optional nested object `chunking` {max_tokens, overlap_tokens, minimum_chunk_tokens}; unknown properties 422', async () => {
    const { client } = stage;
    expect((await makeIndex(client, { chunking: {} })).chunking.max_tokens).toBe(256);
    expect((await makeIndex(client, { chunking: { max_tokens: 100 } })).chunking).toEqual({
      strategy: 'token_window',
      max_tokens: 100,
      // Defaults shrink with a smaller window: an eighth of it overlaps.
      overlap_tokens: 12,
      minimum_chunk_tokens: 16,
    });
    expectInvalid(await client.createIndex({ name: 'unknown', colour: 'red' }));
    expectInvalid(await client.createIndex({ name: 'unknown', chunking: { stride: 5 } }), 'chunking');
    expectInvalid(await client.createIndex({ name: 'unknown', id: '00000000-0000-4000-8000-000000000000' }));
  });

  test('[index-12, decision-3] Default values of the chunking parameters: not shown. `token_window`, 256 / 32 / 16', async () => {
    expect((await makeIndex(stage.client)).chunking).toEqual({
      strategy: 'token_window',
      max_tokens: 256,
      overlap_tokens: 32,
      minimum_chunk_tokens: 16,
    });
  });

  test('[decision-4] chunking is bounded by the model’s positions, and its parameters by one another; `overlap_tokens` of new indexes at most half of `max_tokens`', async () => {
    const { client } = stage;
    const bad: readonly Record<string, unknown>[] = [
      { max_tokens: 0 },
      { max_tokens: -1 },
      { max_tokens: 1_000_000 },
      { max_tokens: 64.5 },
      { max_tokens: '64' },
      { overlap_tokens: -1 },
      { max_tokens: 64, overlap_tokens: 33 },
      { max_tokens: 65, overlap_tokens: 33 },
      { overlap_tokens: 129 },
      { minimum_chunk_tokens: -1 },
      { max_tokens: 64, overlap_tokens: 8, minimum_chunk_tokens: 65 },
    ];
    for (const chunking of bad) {
      expectInvalid(await client.createIndex({ name: 'badly chunked', chunking }), 'chunking');
    }
    expectInvalid(await client.createIndex({ name: 'badly chunked', chunking: [] }), 'chunking');
    const half = await makeIndex(client, { chunking: { max_tokens: 65, overlap_tokens: 32 } });
    expect(half.chunking).toMatchObject({ max_tokens: 65, overlap_tokens: 32 });
  });

  test('[index-13, decision-6] Internal structure of `metadata_schema`: not shown. any JSON object up to 16 KiB, stored and returned as given (descriptive)', async () => {
    const { client } = stage;
    const ofBytes = (bytes: number): Record<string, string> => ({ k: 'x'.repeat(bytes - '{"k":""}'.length) });
    const atLimit = ofBytes(16 * 1024);
    expect((await makeIndex(client, { metadata_schema: atLimit })).metadata_schema).toEqual(atLimit);
    const over = ofBytes(16 * 1024 + 1);
    expectInvalid(
      await client.createIndex({ name: 'large schema', metadata_schema: over }),
      'metadata_schema',
    );
  });

  test('[create-an-index-3, versioning-4, what-the-service-does-1] The returned model version is immutable for the index.', async () => {
    const { client } = stage;
    const made = await makeIndex(client);
    const change = { body: { model_version: 'another' } };
    for (const method of ['PUT', 'POST'])
      expectError(await client.send(method, `/v1/indexes/${made.id}`, change), 404, 'not_found');
    expectInvalid(await client.send('PATCH', `/v1/indexes/${made.id}`, change), 'model_version');
    expect(expectReply(await client.send('GET', `/v1/indexes/${made.id}`), index)).toEqual({
      ...made,
      recall: null,
    });
  });

  test('an index that was refused leaves nothing behind', async () => {
    const tenant = await stage.newTenant();
    expectInvalid(await tenant.client.createIndex({ name: 'half', chunking: { max_tokens: 0 } }));
    expect(expectReply(await tenant.client.listIndexes(), indexList).data).toEqual([]);
    expectReply(await tenant.client.createIndex({ name: 'half' }), index, 201);
  });
});

describe('List indexes', () => {
  test('[list-indexes-1] `GET /v1/indexes` No request body. Response: `{ data: [Index, ...] }` listing all indexes visible to the authenticated tenant.', async () => {
    const tenant = await stage.newTenant();
    expect(expectReply(await tenant.client.listIndexes(), indexList)).toEqual({ data: [] });
    const made: Index[] = [];
    for (let count = 0; count < 5; count += 1) made.push(await makeIndex(tenant.client));
    expect(expectReply(await tenant.client.listIndexes(), indexList)).toEqual({ data: made });
  });

  test('[list-indexes-2, decision-21] Pagination and ordering of the list: not shown. by `created_at`; without pages unless `limit` or `cursor` asks for one (at most 1,000 indexes a tenant, then 422)', async () => {
    const tenant = await stage.newTenant();
    let next = 0;
    const create = async (): Promise<void> => {
      while (next < 1000) {
        next += 1;
        expect((await tenant.client.createIndex({ name: `n ${next}` })).status).toBe(201);
      }
    };
    await Promise.all(Array.from({ length: 8 }, create));
    expectInvalid(await tenant.client.createIndex({ name: 'one more' }));
    const { data } = expectReply(await tenant.client.listIndexes(), indexList);
    expect(data).toHaveLength(1000);
    const times = data.map((one) => one.created_at);
    expect(times).toEqual(times.toSorted());
    // Room again after one is deleted.
    const first = data[0]?.id ?? '';
    expect(expectReply(await tenant.client.send('DELETE', `/v1/indexes/${first}`), deleted)).toEqual({
      deleted: true,
    });
    expectReply(await tenant.client.createIndex({ name: 'one more' }), index, 201);
  });
});

describe('additions of ours', () => {
  test('pages of the list hold every index once, also while others come and go', async () => {
    const { client } = await stage.newTenant();
    const made: Index[] = [];
    for (let n = 0; n < 5; n += 1) made.push(await makeIndex(client));
    expectReply(await client.send('GET', '/v1/indexes'), indexList);
    const listed: Index[] = [];
    for (let query = '?limit=2'; query !== '';) {
      const page = expectReply(await client.send('GET', `/v1/indexes${query}`), indexPage);
      listed.push(...page.data);
      if (listed.length === 2) {
        await makeIndex(client);
        await client.send('DELETE', `/v1/indexes/${made[1]!.id}`);
      }
      query = page.next_cursor === null ? '' : `?limit=2&cursor=${page.next_cursor}`;
    }
    expect(listed.map(({ id }) => id)).toEqual([...made.map(({ id }) => id), expect.any(String)]);
    expectInvalid(await client.send('GET', '/v1/indexes?limit=0'), 'limit');
    expectInvalid(await client.send('GET', '/v1/indexes?cursor=x'), 'cursor');
  });

  test('[decision-45] PATCH `/v1/indexes/{id}` renames, or swaps two names in one step', async () => {
    const tenant = await stage.newTenant();
    const { client } = tenant;
    const update = (id: string, body: unknown) => client.send('PATCH', `/v1/indexes/${id}`, { body });
    const [serving, anew] = [await makeIndex(client), await makeIndex(client)];
    await put(client, serving.id, [{ doc_id: 'old', text: 'river' }]);
    await put(client, anew.id, [{ doc_id: 'new', text: 'river' }]);
    expectReply(await client.send('GET', `/v1/indexes/${serving.id}`), index);

    expect(expectReply(await update(serving.id, { name: 'books' }), index)).toEqual({
      ...serving,
      name: 'books',
    });
    expect(expectReply(await client.send('GET', `/v1/indexes/${serving.id}`), index).name).toBe('books');
    expectInvalid(await update(anew.id, { name: 'books' }), 'name');
    expectReply(await update(serving.id, { name: 'books' }), index);
    // The name before is free.
    expectReply(await client.createIndex({ name: serving.name }), index, 201);

    const swapped = expectReply(await update(anew.id, { swap_name_with: serving.id }), index);
    expect(swapped).toEqual({ ...anew, name: 'books' });
    for (const [id, name] of [
      [serving.id, anew.name],
      [anew.id, 'books'],
    ])
      expect(expectReply(await client.send('GET', `/v1/indexes/${id}`), index).name).toBe(name);
    // An identifier means what it meant.
    for (const [id, docId] of [
      [serving.id, 'old'],
      [anew.id, 'new'],
    ])
      expect((await find(client, id!, { query: 'river' })).results.map((result) => result.doc_id)).toEqual([
        docId,
      ]);

    const foreign = await makeIndex(stage.client);
    for (const body of [{ swap_name_with: foreign.id }, { swap_name_with: randomUUID() }])
      expectError(await update(serving.id, body), 404, 'not_found');
    expectError(await update(randomUUID(), { name: 'x' }), 404, 'not_found');
    expectInvalid(await update(serving.id, { swap_name_with: serving.id }), 'swap_name_with');
    expectInvalid(await update(serving.id, {}));
    expect(expectReply(await stage.client.send('GET', `/v1/indexes/${foreign.id}`), index)).toEqual({
      ...foreign,
      recall: null,
    });
  });

  test('[decision-22] GET and DELETE `/v1/indexes/{id}`', async () => {
    const { client } = stage;
    const made = await makeIndex(client, { name: 'comes and goes' });
    await put(client, made.id, [{ doc_id: 'one', text: 'river' }]);
    expect(expectReply(await client.send('GET', `/v1/indexes/${made.id}`), index)).toEqual({
      ...made,
      recall: null,
    });
    expect(expectReply(await client.send('DELETE', `/v1/indexes/${made.id}`), deleted)).toEqual({
      deleted: true,
    });
    expectError(await client.send('GET', `/v1/indexes/${made.id}`), 404, 'not_found');
    expectError(await client.search(made.id, { query: 'river' }), 404, 'not_found');
    expectError(await client.upsert(made.id, [{ doc_id: 'one', text: 'river' }]), 404, 'not_found');
    expectError(await client.deleteDocument(made.id, 'one'), 404, 'not_found');
    // Its name is free, and the new index knows nothing of the old one's documents.
    const again = await makeIndex(client, { name: 'comes and goes' });
    expect(again.id).not.toBe(made.id);
    expect((await find(client, again.id, { query: 'river' })).results).toEqual([]);
    expectInvalid(await client.send('GET', '/v1/indexes/not-a-uuid'), 'index_id');
    expectInvalid(await client.send('DELETE', '/v1/indexes/not-a-uuid'), 'index_id');
  });
});
