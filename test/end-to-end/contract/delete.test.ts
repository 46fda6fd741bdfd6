/** "Delete a document". */
import { describe, expect, test } from 'vitest';

import { expectError, expectInvalid, expectReply } from '../../support/running/client.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { deleted } from '../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';

describe('Delete a document', () => {
  test('[delete-a-document-1, delete-a-document-2] `DELETE /v1/indexes/{index_id}/documents/{doc_id}` Path: `index_id` (UUID), `doc_id` (string, length 1 to 255, reserved characters URL-encoded).', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const awkward = [
      'a/b',
      'a?b#c',
      '100%',
      '%2F',
      'a b+c',
      'q\'uote"',
      'é',
      '🪸',
      'a:b@c;d=e&f,g',
      '...',
      '~',
      'x'.repeat(255),
    ];
    for (const docId of awkward) {
      await put(client, id, [{ doc_id: docId, text: 'river' }]);
      expect(expectReply(await client.deleteDocument(id, docId), deleted)).toEqual({ deleted: true });
      expect(expectReply(await client.deleteDocument(id, docId), deleted)).toEqual({ deleted: false });
    }
    expect((await find(client, id, { query: 'river' })).results).toEqual([]);
    expectInvalid(await client.deleteDocument(id, 'x'.repeat(256)), 'doc_id');
    expectInvalid(await client.deleteDocument('not-a-uuid', 'a'), 'index_id');
    expectError(await client.deleteDocument(absentIndex, 'a'), 404, 'not_found');
  });

  test('[delete-a-document-3, delete-a-document-4, states-and-transitions-5] Response: `{ deleted: boolean }`. `deleted` is true when a stored document existed and was removed. A delete removes it.', async () => {
    const tenant = await stage.newTenant();
    const { id } = await makeIndex(tenant.client);
    await put(tenant.client, id, [
      { doc_id: 'goes', text: 'river stone' },
      { doc_id: 'stays', text: 'river stone' },
    ]);
    expect(expectReply(await tenant.client.deleteDocument(id, 'goes'), deleted)).toEqual({ deleted: true });
    const { results } = await find(tenant.client, id, { query: 'river stone', top_k: 100 });
    expect(results.map((result) => result.doc_id)).toEqual(['stays']);
    expect((await readUsage(tenant.client)).usage.documents).toBe(1);
  });

  test('[delete-a-document-5] Deletion is idempotent: deleting an absent ID succeeds with `deleted` false.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(expectReply(await client.deleteDocument(id, 'never was'), deleted)).toEqual({ deleted: false });
    }
  });

  test('of many deletions at the same time exactly one removes the document', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'contested', text: 'river' }]);
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => client.deleteDocument(id, 'contested')),
    );
    const removed = replies.filter((reply) => expectReply(reply, deleted).deleted);
    expect(removed).toHaveLength(1);
  });

  test('a deleted document can be stored again, and deletes nothing of another index', async () => {
    const { client } = stage;
    const [one, other] = [await makeIndex(client), await makeIndex(client)];
    for (const { id } of [one, other]) await put(client, id, [{ doc_id: 'a', text: 'river' }]);
    expect(expectReply(await client.deleteDocument(one.id, 'a'), deleted)).toEqual({ deleted: true });
    expect((await find(client, other.id, { query: 'river' })).results).toHaveLength(1);
    await put(client, one.id, [{ doc_id: 'a', text: 'river', metadata: { again: true } }]);
    const { results } = await find(client, one.id, { query: 'river' });
    expect(results.map((result) => result.metadata)).toEqual([{ again: true }]);
  });

  test('an empty body with a JSON content type is no error', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const reply = await client.send('DELETE', `/v1/indexes/${id}/documents/a`, {
      headers: { 'content-type': 'application/json' },
    });
    expect(expectReply(reply, deleted)).toEqual({ deleted: false });
  });
});
