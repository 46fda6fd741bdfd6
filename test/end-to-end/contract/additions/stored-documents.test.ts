/** Documents as they are stored: listed, read, counted, and their metadata replaced. Additions of ours. */
import { describe, expect, test } from 'vitest';

import { expectError, expectInvalid, expectReply, type Client } from '../../../support/running/client.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { passages, textOfTokens } from '../../../support/running/texts.ts';
import {
  documentCount,
  documentPage,
  storedDocument,
  type StoredDocument,
} from '../../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';

const address = (indexId: string, docId: string) =>
  `/v1/indexes/${indexId}/documents/${encodeURIComponent(docId)}`;
const read = (client: Client, indexId: string, docId: string) => client.send('GET', address(indexId, docId));
const update = (client: Client, indexId: string, docId: string, metadata: unknown) =>
  client.send('PATCH', address(indexId, docId), { body: { metadata } });

/** All pages; `between` runs after each. */
async function listAll(
  client: Client,
  indexId: string,
  limit: number,
  between?: () => Promise<void>,
): Promise<readonly StoredDocument[]> {
  const listed: StoredDocument[] = [];
  for (let query = `?limit=${limit}`; query !== '';) {
    const path = `/v1/indexes/${indexId}/documents${query}`;
    const page = expectReply(await client.send('GET', path), documentPage);
    expect(page.data.length).toBeLessThanOrEqual(limit);
    listed.push(...page.data);
    await between?.();
    query = page.next_cursor === null ? '' : `?limit=${limit}&cursor=${page.next_cursor}`;
  }
  return listed;
}

describe('Stored documents', () => {
  test('[decision-43] GET `/v1/indexes/{id}/documents` by the bytes of `doc_id`, in pages; a document that is stored throughout is on one page exactly', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    expect(await listAll(client, id, 10)).toEqual([]);
    const docIds = ['b', 'a/?#&=', 'Z', 'é', '💥', '\uffff', '10', '9'];
    const metadata = { n: 1, 'a "b"': [null] };
    await put(
      client,
      id,
      docIds.map((doc_id) => ({ doc_id, text: 'river', metadata })),
    );
    const sorted = docIds.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
    const expected = sorted.map((doc_id) => ({ doc_id, metadata, chunk_count: 1 }));
    for (const limit of [1, 3, 8, 1000]) expect(await listAll(client, id, limit)).toEqual(expected);

    let turn = 0;
    const listed = await listAll(client, id, 2, async () => {
      turn += 1;
      await client.deleteDocument(id, `a${turn - 1}`);
      await put(client, id, [
        { doc_id: `a${turn}`, text: 'stone' },
        { doc_id: '9', text: 'river', metadata },
      ]);
    });
    expect(listed.filter(({ doc_id }) => docIds.includes(doc_id))).toEqual(expected);
    expect(new Set(listed.map(({ doc_id }) => doc_id)).size).toBe(listed.length);
    expectInvalid(await client.send('GET', `/v1/indexes/${id}/documents?limit=1001`), 'limit');
    expectInvalid(await client.send('GET', `/v1/indexes/${id}/documents?cursor=!`), 'cursor');
    expectError(await client.send('GET', `/v1/indexes/${absentIndex}/documents`), 404, 'not_found');
  });

  test('[decision-44] GET `/v1/indexes/{id}/documents/{doc_id}` and GET `/v1/indexes/{id}/count`; never a text or a vector', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, { chunking: { max_tokens: 16 } });
    const count = async () => expectReply(await client.send('GET', `/v1/indexes/${id}/count`), documentCount);
    expect(await count()).toEqual({ documents: 0, chunks: 0 });
    const { upserted_chunks: chunks } = await put(client, id, [
      { doc_id: 'long/1', text: textOfTokens(100), metadata: { n: 1 } },
      { doc_id: 'short', text: passages[0]!.text },
    ]);
    const long = expectReply(await read(client, id, 'long/1'), storedDocument);
    const short = expectReply(await read(client, id, 'short'), storedDocument);
    expect(long).toMatchObject({ doc_id: 'long/1', metadata: { n: 1 } });
    expect(long.chunk_count).toBeGreaterThan(1);
    expect(long.chunk_count + short.chunk_count).toBe(chunks);
    expect(await count()).toEqual({ documents: 2, chunks });
    await client.deleteDocument(id, 'short');
    expect(await count()).toEqual({ documents: 1, chunks: long.chunk_count });
    expectError(await read(client, id, 'short'), 404, 'not_found');
    expectError(await read(client, absentIndex, 'short'), 404, 'not_found');
    expectError(await client.send('GET', `/v1/indexes/${absentIndex}/count`), 404, 'not_found');
    expectInvalid(await read(client, id, 'x'.repeat(256)), 'doc_id');
  });

  test('[decision-46] PATCH `/v1/indexes/{id}/documents/{doc_id}` replaces the metadata: a new version, not encoded, charged as a request alone', async () => {
    const tenant = await stage.newTenant();
    const { client } = tenant;
    const { id } = await makeIndex(client, { chunking: { max_tokens: 16 } });
    await put(client, id, [
      { doc_id: 'a', text: textOfTokens(40), metadata: { kind: 'draft', n: 1 } },
      { doc_id: 'b', text: textOfTokens(40), metadata: { kind: 'draft' } },
    ]);
    const search = async (filter: object) =>
      (await find(client, id, { query: 'river stone', top_k: 100, filter })).results;
    const before = await search({});
    const used = await readUsage(client);

    const stored = expectReply(await update(client, id, 'a', { kind: 'final' }), storedDocument);
    expect(stored).toEqual({ doc_id: 'a', metadata: { kind: 'final' }, chunk_count: stored.chunk_count });
    expect(expectReply(await read(client, id, 'a'), storedDocument)).toEqual(stored);

    // Charged before the searches below are.
    const { usage } = await readUsage(client);
    expect(usage).toEqual({ ...used.usage, requests: used.usage.requests + 3 });
    // The same chunks with the same scores, as another version of the document.
    const after = await search({});
    const places = (results: typeof after) =>
      results.map(({ doc_id, chunk_index, score }) => `${doc_id} ${chunk_index} ${score}`).toSorted();
    expect(places(after)).toEqual(places(before));
    for (const result of after.filter(({ doc_id }) => doc_id === 'a'))
      expect(before.map(({ chunk_id }) => chunk_id)).not.toContain(result.chunk_id);
    expect(new Set((await search({ kind: 'final' })).map(({ doc_id }) => doc_id))).toEqual(new Set(['a']));
    expect(new Set((await search({ kind: 'draft' })).map(({ doc_id }) => doc_id))).toEqual(new Set(['b']));
    expect(await search({ n: 1 })).toEqual([]);

    expectError(await update(client, id, 'absent', {}), 404, 'not_found');
    expectError(await update(client, absentIndex, 'a', {}), 404, 'not_found');
    expectInvalid(await update(client, id, 'a', 'x'), 'metadata');
    expectInvalid(await client.send('PATCH', address(id, 'a'), { body: {} }), 'metadata');
    expectReply(await update(client, id, 'a', {}), storedDocument);
    expect(await search({ kind: 'final' })).toEqual([]);
  });

  test('of metadata and texts that are replaced at once none is lost', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'a', text: 'river stone' }]);
    const updates = Array.from({ length: 8 }, (_, n) => update(client, id, 'a', { n }));
    const upsert = put(client, id, [{ doc_id: 'a', text: 'bees dance', metadata: { text: 'new' } }]);
    for (const reply of await Promise.all(updates)) expectReply(reply, storedDocument);
    await upsert;
    // The text is the new one, whether the upsert or an update was committed last.
    const [found] = (await find(client, id, { query: 'bees dance', top_k: 1 })).results;
    const { id: fresh } = await makeIndex(client);
    await put(client, fresh, [{ doc_id: 'a', text: 'bees dance' }]);
    const [wanted] = (await find(client, fresh, { query: 'bees dance', top_k: 1 })).results;
    expect(found?.score).toBe(wanted?.score);
    expect((await listAll(client, id, 10)).length).toBe(1);
  });
});
