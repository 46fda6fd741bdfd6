/** Documents that expire: an addition of ours to the interface. */
import { describe, expect, test } from 'vitest';
import { expectError, expectInvalid, expectReply, type Client } from '../../../support/running/client.ts';
import { eventually } from '../../../support/running/eventually.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import {
  documentCount,
  documentPage,
  facets,
  storedDocument,
  upserted,
} from '../../../support/running/wire.ts';

const stage = await useContractStage();

const address = (indexId: string, rest = ''): string => `/v1/indexes/${indexId}/documents${rest}`;

const putUntil = async (client: Client, indexId: string, expiresAt: string, docIds: readonly string[]) =>
  client.send('POST', `${address(indexId)}?expires_at=${encodeURIComponent(expiresAt)}`, {
    body: { documents: docIds.map((doc_id) => ({ doc_id, text: 'river', metadata: { kind: 'x' } })) },
  });

const later = '2999-01-01T00:00:00Z';

/** The documents that each kind of answer has. */
async function answers(client: Client, id: string) {
  const found = (await find(client, id, { query: 'river', top_k: 100 })).results;
  const listed = expectReply(await client.send('GET', address(id)), documentPage);
  const counted = expectReply(await client.send('GET', `/v1/indexes/${id}/count`), documentCount);
  const values = expectReply(await client.facets(id, { fields: ['kind'] }), facets);
  expect(values.documents).toBe(counted.documents);
  expect(listed.data).toHaveLength(counted.documents);
  expect(found.map(({ doc_id: docId }) => docId).toSorted()).toEqual(
    listed.data.map(({ doc_id: docId }) => docId),
  );
  return listed.data.map(({ doc_id: docId }) => docId);
}

describe('Documents that expire', () => {
  test('are in no answer from their time on, and are not counted any more once a search has met them', async () => {
    const { client } = await stage.newTenant();
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'c', text: 'river' }]);
    expectReply(await putUntil(client, id, later, ['b']), upserted);
    const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
    expectReply(await putUntil(client, id, inAnHour, ['a', 'd']), upserted);
    expect(await answers(client, id)).toEqual(['a', 'b', 'c', 'd']);
    const stored = expectReply(await client.send('GET', address(id, '/a')), storedDocument);
    expect(stored.expires_at).toBe(inAnHour);
    const atMs = Date.now() + 1_000;
    for (const docId of ['/d', '/a'])
      await client.send('PATCH', address(id, docId), { body: { expires_at: new Date(atMs).toISOString() } });
    await eventually(async () => (await client.send('GET', address(id, '/a'))).status === 404);
    expect(Date.now()).toBeGreaterThanOrEqual(atMs);
    expect(await answers(client, id)).toEqual(['b', 'c']);
    expect((await readUsage(client)).usage.documents).toBe(2);
    expectError(
      await client.send('PATCH', address(id, '/a'), { body: { expires_at: null } }),
      404,
      'not_found',
    );
  });

  test('change their expiry with PATCH, and lose it with a replacement', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    expectReply(await putUntil(client, id, '2999-01-01T01:30:00.5+01:30', ['a']), upserted);
    const patch = async (body: unknown) =>
      expectReply(await client.send('PATCH', address(id, '/a'), { body }), storedDocument);
    const first = { doc_id: 'a', metadata: { kind: 'x' }, chunk_count: 1 };
    expect(await patch({ metadata: { n: 1 } })).toEqual({
      ...first,
      metadata: { n: 1 },
      expires_at: '2999-01-01T00:00:00.500Z',
    });
    const changed = { metadata: { n: 2 }, expires_at: later };
    expect(await patch(changed)).toEqual({
      ...first,
      metadata: { n: 2 },
      expires_at: '2999-01-01T00:00:00.000Z',
    });
    expect(await patch({ expires_at: null })).toEqual({ ...first, metadata: { n: 2 } });
    await patch({ expires_at: later });
    await put(client, id, [{ doc_id: 'a', text: 'river' }]);
    expect(expectReply(await client.send('GET', address(id, '/a')), storedDocument)).not.toHaveProperty(
      'expires_at',
    );
    await patch({ expires_at: '2001-01-01T00:00:00Z' });
    expect(await answers(client, id)).toEqual([]);
  });

  test('have their expiry beside the body, which stays that of the specification', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const documents = [{ doc_id: 'a', text: 'river' }];
    for (const body of [
      { documents, expires_at: later },
      { documents: [{ ...documents[0], expires_at: later }] },
    ])
      expectInvalid(await client.send('POST', address(id), { body }));
    for (const expiresAt of [
      '',
      'tomorrow',
      '2999-01-01',
      '2999-01-01T00:00:00',
      '2999-02-30T00:00:00Z',
      '1',
    ]) {
      expectInvalid(await putUntil(client, id, expiresAt, ['a']), 'expires_at');
      expectInvalid(
        await client.send('PATCH', address(id, '/a'), { body: { expires_at: expiresAt } }),
        'expires_at',
      );
    }
    expect(await answers(client, id)).toEqual([]);
  });
});
