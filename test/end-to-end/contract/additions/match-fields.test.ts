/** `match_fields` of an index: at its creation, by PATCH, in lists and with `if_exists`. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { expectError, expectInvalid, expectReply, type Client } from '../../../support/running/client.ts';
import { makeIndex } from '../../../support/running/requests.ts';
import { index, indexList, type Index } from '../../../support/running/wire.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';

const stage = await useContractStage();
const eight = Array.from({ length: 8 }, (_, number) => `field ${number}`);
const deepest = Array.from({ length: 16 }, () => 'a').join('.');
const longest = '📚'.repeat(255);

const patch = (client: Client, id: string, body: object) =>
  client.send('PATCH', `/v1/indexes/${id}`, { body });

async function patched(client: Client, id: string, body: object): Promise<Index> {
  return expectReply(await patch(client, id, body), index);
}

/** Refused fields, and the path that the answer names. */
const refused = [
  [[...eight, 'ninth'], 'match_fields'],
  [['a', 'b', 'a'], 'match_fields.2'],
  [[''], 'match_fields.0'],
  [['a', `${deepest}.a`], 'match_fields.1'],
  [[`${longest}a`], 'match_fields.0'],
  [['\ud800'], 'match_fields.0'],
  [[1], 'match_fields.0'],
  ['code', 'match_fields'],
  [{ code: true }, 'match_fields'],
] as const;

describe('match_fields', () => {
  test.each([[[]], [['code']], [eight], [[deepest, longest, 'part.number', 'a"b\\c', '\u0000']]])(
    'of a new index are in its answers: %j',
    async (fields) => {
      const { client } = await stage.newTenant();
      const made = await makeIndex(client, { match_fields: fields });
      expect(made.match_fields).toEqual(fields);
      expect(expectReply(await client.listIndexes(), indexList).data).toEqual([made]);
      const read = await client.send('GET', `/v1/indexes/${made.id}`);
      expect(expectReply(read, index).match_fields).toEqual(fields);
    },
  );

  test('are none by default, and null counts as absent at the creation alone', async () => {
    const { client } = await stage.newTenant();
    expect((await makeIndex(client)).match_fields).toEqual([]);
    const { id } = await makeIndex(client, { match_fields: null });
    expect((await patched(client, id, { match_fields: ['a'] })).match_fields).toEqual(['a']);
    expect((await patched(client, id, { match_fields: null })).match_fields).toEqual([]);
  });

  test('change alone or with the name, and stay with the id at a swap', async () => {
    const { client } = await stage.newTenant();
    const made = await makeIndex(client, { name: 'codes', match_fields: ['code'] });
    const other = await makeIndex(client, { name: 'other' });
    expect(await patched(client, made.id, { name: 'parts' })).toEqual({ ...made, name: 'parts' });
    const fields = ['part', 'code'];
    const both = await patched(client, 'name:parts', { name: 'codes', match_fields: fields });
    expect(both).toEqual({ ...made, match_fields: fields });
    expect(await patched(client, made.id, { swap_name_with: other.id })).toEqual({ ...both, name: 'other' });
    expectInvalid(await patch(client, made.id, { name: 'codes', match_fields: [] }), 'name');
    for (const body of [
      { swap_name_with: other.id, match_fields: [] },
      { swap_name_with: other.id, match_fields: null },
      {},
    ])
      expectInvalid(await patch(client, made.id, body), '');
    const rows = expectReply(await client.listIndexes(), indexList).data;
    expect(rows.map((row) => [row.name, row.match_fields])).toEqual([
      ['other', fields],
      ['codes', []],
    ]);
  });

  test('that cannot be are refused with their path, and change nothing', async () => {
    const { client } = await stage.newTenant();
    const made = await makeIndex(client, { match_fields: ['code'] });
    for (const [fields, path] of refused) {
      expectInvalid(await client.createIndex({ name: 'refused', match_fields: fields }), path);
      expectInvalid(await patch(client, made.id, { match_fields: fields }), path);
    }
    const stranger = await stage.newTenant();
    for (const id of [made.id, randomUUID()])
      expectError(await patch(stranger.client, id, { match_fields: [] }), 404, 'not_found');
    expect(expectReply(await client.listIndexes(), indexList).data).toEqual([made]);
  });

  test('are compared by if_exists in any order, if they are given', async () => {
    const { client } = await stage.newTenant();
    const body = { name: 'once', if_exists: 'return' };
    const made = expectReply(await client.createIndex({ ...body, match_fields: ['a', 'b'] }), index, 201);
    for (const more of [
      {},
      { match_fields: null },
      { match_fields: ['a', 'b'] },
      { match_fields: ['b', 'a'] },
    ])
      expect(expectReply(await client.createIndex({ ...body, ...more }), index)).toEqual(made);
    for (const fields of [[], ['a'], ['a', 'c'], ['a', 'b', 'c']]) {
      const reply = await client.createIndex({ ...body, match_fields: fields });
      expect(expectInvalid(reply, 'match_fields').message).toContain('["a","b"]');
    }
    expect(expectReply(await client.listIndexes(), indexList).data).toEqual([made]);
  });
});
