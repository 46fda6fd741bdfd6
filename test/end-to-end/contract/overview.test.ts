/** The specification's first section: what the service does. */
import { describe, expect, test } from 'vitest';

import { expectError, expectReply } from '../../support/running/client.ts';
import { createRandom } from '../../support/running/random.ts';
import { find, makeIndex, put, readUsage, useSharedStage } from '../../support/running/stage.ts';
import { passages, recombine } from '../../support/running/texts.ts';
import { deleted, indexList, ranked } from '../../support/running/wire.ts';

const stage = useSharedStage();

describe('What the service does', () => {
  test('[what-the-service-does-1] A tenant creates named indexes, each bound to an immutable model version.', async () => {
    const { client, server } = stage;
    const created = await makeIndex(client, { name: 'bound to its version' });
    expect(created.name).toBe('bound to its version');
    expect(created.model_version).toBe(server.readyLine.model_version);
    const changes = { model_version: 'another', name: 'renamed' };
    expectError(
      await client.send('PATCH', `/v1/indexes/${created.id}`, { body: changes }),
      422,
      'validation_error',
    );
    expectError(await client.send('PUT', `/v1/indexes/${created.id}`, { body: changes }), 404, 'not_found');
    expect(expectReply(await client.listIndexes(), indexList).data).toContainEqual(created);
  });

  test('[what-the-service-does-2, what-the-service-does-3] The tenant upserts documents (source text plus customer metadata) into an index. Each document is split into chunks.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const long = recombine(createRandom(1), 500);
    const stored = await put(client, id, [
      { doc_id: 'short', text: passages[0]?.text ?? '', metadata: { kind: 'short' } },
      { doc_id: 'long', text: long, metadata: { kind: 'long' } },
    ]);
    expect(stored.upserted_documents).toBe(2);
    const chunks = await find(client, id, { query: 'light', top_k: 100, filter: { kind: 'long' } });
    expect(chunks.results.length).toBeGreaterThanOrEqual(2);
    expect(
      chunks.results.map((result) => result.chunk_index).toSorted((left, right) => left - right),
    ).toEqual(chunks.results.map((_, position) => position));
    expect(chunks.results.length).toBe(stored.upserted_chunks - 1);
    expect(new Set(chunks.results.map((result) => result.chunk_id)).size).toBe(chunks.results.length);
  });

  test('[what-the-service-does-4, what-the-service-does-5, what-the-service-does-6, what-the-service-does-7] The tenant searches an index with a query. The service returns ranked references to chunks: `doc_id`, `chunk_id`, `chunk_index`, `score`, `metadata`. It does not return source text. Callers load the original text from their own datastore using `doc_id`.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(
      client,
      id,
      passages.map((passage) => ({ doc_id: passage.subject, text: passage.text, metadata: { n: 1 } })),
    );
    const reply = await client.search(id, {
      query: passages[3]?.question,
      top_k: 5,
      return_components: false,
    });
    const { results } = expectReply(reply, ranked);
    expect(results).toHaveLength(5);
    expect(results[0]?.doc_id).toBe(passages[3]?.subject);
    for (const result of results) {
      expect(Object.keys(result).toSorted()).toEqual([
        'chunk_id',
        'chunk_index',
        'doc_id',
        'metadata',
        'score',
        // An addition of ours.
        'text_range',
      ]);
    }
    const scores = results.map((result) => result.score);
    expect(scores).toEqual(scores.toSorted((left, right) => right - left));
    for (const passage of passages) {
      expect(reply.text).not.toContain(passage.text.slice(0, 40));
    }
    expect(passages.find((passage) => passage.subject === results[0]?.doc_id)?.text).toContain('forager');
  });

  test('[what-the-service-does-8] The tenant can rank one to 50 request-local documents for one query without storing them (transient scoring).', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const documents = passages.map((passage) => ({ doc_id: passage.subject, text: passage.text }));
    const fifty = [
      ...documents,
      ...documents.slice(0, 14).map((one) => ({ ...one, doc_id: `${one.doc_id}, again` })),
    ];
    expect(fifty).toHaveLength(50);
    for (const some of [fifty.slice(0, 1), fifty]) {
      const { results } = expectReply(
        await client.score({ query: 'a long cool rise', documents: some }),
        ranked,
      );
      expect(results).toHaveLength(some.length);
    }
    expect((await find(client, id, { query: 'a long cool rise' })).results).toEqual([]);
  });

  test('[what-the-service-does-9] The service does not return conventional embedding vectors.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'one', text: passages[1]?.text ?? '' }]);
    const replies = [
      await client.search(id, { query: 'sourdough', return_components: true }),
      await client.score({
        query: 'sourdough',
        documents: [{ doc_id: 'one', text: 'bread' }],
        return_components: true,
      }),
    ];
    for (const reply of replies) {
      expect(reply.status).toBe(200);
      expect(reply.text).not.toMatch(/vector|embedding/i);
      // No array of more than a handful of bare numbers, whatever it may be called.
      expect(reply.text).not.toMatch(/\[(\s*-?[0-9.eE+-]+\s*,){8}/);
    }
  });

  test('[what-the-service-does-10] Everything is tenant-scoped: an API key identifies one tenant, and indexes and usage belong to that tenant.', async () => {
    const other = await stage.newTenant();
    const mine = await makeIndex(stage.client, { name: 'same name in two tenants' });
    const theirs = await makeIndex(other.client, { name: 'same name in two tenants' });
    expect(expectReply(await other.client.listIndexes(), indexList).data).toEqual([theirs]);
    expect(theirs.id).not.toBe(mine.id);
    await put(other.client, theirs.id, [{ doc_id: 'one', text: 'river stone' }]);
    const before = await readUsage(other.client);
    await put(stage.client, mine.id, [{ doc_id: 'one', text: 'river stone house green' }]);
    const after = await readUsage(other.client);
    expect(after.usage.input_tokens).toBe('2');
    expect({ ...after.usage, requests: 0 }).toEqual({ ...before.usage, requests: 0 });
  });

  test('[what-the-service-does-11, what-the-service-does-12] Transient scoring records an aggregate usage event only. The query, documents, chunks and derived representations are not stored as indexed content.', async () => {
    const tenant = await stage.newTenant();
    const { id } = await makeIndex(tenant.client);
    await tenant.client.score({
      query: 'river stone',
      documents: [{ doc_id: 'transient', text: 'house green paper', metadata: { kind: 'transient' } }],
    });
    const { usage } = await readUsage(tenant.client);
    expect(usage).toMatchObject({
      scores: 1,
      input_tokens: '5',
      documents: 0,
      document_upserts: 0,
      searches: 0,
    });
    expect((await find(tenant.client, id, { query: 'house green paper' })).results).toEqual([]);
    expect(expectReply(await tenant.client.deleteDocument(id, 'transient'), deleted)).toEqual({
      deleted: false,
    });
  });

  test('[what-the-service-does-13] An index has a `text_retention` setting; the only allowed value is `none`.', async () => {
    const { client } = stage;
    expect((await makeIndex(client, { text_retention: 'none' })).text_retention).toBe('none');
    expect((await makeIndex(client)).text_retention).toBe('none');
    for (const value of ['full', 'None', '', null, true, 0]) {
      const reply = await client.createIndex({ name: 'keeps text', text_retention: value });
      expect(expectError(reply, 422, 'validation_error').issues?.[0]?.path).toBe('text_retention');
    }
  });

  test('[what-the-service-does-14] A metadata filter on search is not an authorization boundary.', async () => {
    // Any key of the tenant reaches any document, whatever a filter of another request names.
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(client, id, [
      { doc_id: 'a', text: 'river stone', metadata: { owner: 'alice' } },
      { doc_id: 'b', text: 'river stone', metadata: { owner: 'bob' } },
    ]);
    const owners = async (filter?: Record<string, unknown>): Promise<unknown[]> =>
      (await find(client, id, { query: 'river', ...(filter === undefined ? {} : { filter }) })).results.map(
        (result) => result.metadata['owner'],
      );
    expect(await owners({ owner: 'alice' })).toEqual(['alice']);
    expect(await owners()).toEqual(['alice', 'bob']);
  });
});
