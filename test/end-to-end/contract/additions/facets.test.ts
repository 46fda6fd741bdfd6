/** Counting documents by the values of their metadata: an addition of ours to the interface. */
import { expect, test } from 'vitest';
import { expectError, expectInvalid, expectReply } from '../../../support/running/client.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';
import { makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { facets } from '../../../support/running/wire.ts';

const stage = await useContractStage();

test('counts the values of fields over the documents that match, the most frequent first', async () => {
  const { client } = await stage.newTenant();
  const { id } = await makeIndex(client);
  await put(client, id, [
    { doc_id: 'a', text: 'river', metadata: { kind: 'book', tags: ['x', 'y', 'x'], year: 2001 } },
    { doc_id: 'b', text: 'river', metadata: { kind: 'paper', tags: 'x', year: 2002 } },
    { doc_id: 'c', text: 'river', metadata: { kind: 'paper', tags: [], year: null } },
    { doc_id: 'd', text: 'river', metadata: { tags: [1, true, null] } },
  ]);
  const count = async (body: unknown) => expectReply(await client.facets(id, body), facets);
  const before = await readUsage(client);
  expect(await count({ fields: ['tags', 'kind', 'absent'] })).toEqual({
    documents: 4,
    facets: [
      {
        field: 'tags',
        distinct: 5,
        values: [
          { value: 'x', count: 2 },
          { value: 1, count: 1 },
          { value: 'y', count: 1 },
          { value: null, count: 1 },
          { value: true, count: 1 },
        ],
      },
      {
        field: 'kind',
        distinct: 2,
        values: [
          { value: 'paper', count: 2 },
          { value: 'book', count: 1 },
        ],
      },
      { field: 'absent', distinct: 0, values: [] },
    ],
  });
  const { usage } = await readUsage(client);
  expect(usage).toEqual({ ...before.usage, requests: before.usage.requests + 2 });
  const papers = { fields: ['year'], limit: 1, filter: { kind: 'paper' } };
  expect(await count(papers)).toEqual({
    documents: 2,
    facets: [{ field: 'year', distinct: 2, values: [{ value: 2002, count: 1 }] }],
  });
  expect(await count({ ...papers, where: { year: { gt: 2002 } } })).toMatchObject({
    documents: 0,
    facets: [{ distinct: 0, values: [] }],
  });
  const asOperator = { fields: ['year'], filter: { kind: { $in: ['paper'] } } };
  expect(await count(asOperator)).toMatchObject({
    documents: 0,
    hint: expect.stringContaining('kind') as string,
  });
  const { id: empty } = await makeIndex(client);
  expectReply(await client.facets(empty, { fields: ['kind'] }), facets);
});

test('refuses what is no request for counts', async () => {
  const { client } = stage;
  const { id } = await makeIndex(client);
  const names = Array.from({ length: 11 }, (_, n) => `f${n}`);
  expectReply(await client.facets(id, { fields: names.slice(1), limit: 100 }), facets);
  for (const fields of [[], names, undefined, 'kind', null]) {
    expectInvalid(await client.facets(id, { fields }), 'fields');
  }
  expectInvalid(await client.facets(id, { fields: ['a', 'b', 'a'] }), 'fields.2');
  expectInvalid(await client.facets(id, { fields: ['a', 1] }), 'fields.1');
  expectInvalid(await client.facets(id, { fields: [''] }), 'fields.0');
  expectInvalid(await client.facets(id, { fields: ['a'.repeat(256)] }), 'fields.0');
  for (const limit of [0, 101, 1.5, '1']) {
    expectInvalid(await client.facets(id, { fields: ['a'], limit }), 'limit');
  }
  expectInvalid(await client.facets(id, { fields: ['a'], where: { n: { above: 1 } } }), 'where.n');
  const absent = '00000000-0000-4000-8000-000000000000';
  expectError(await client.facets(absent, { fields: ['a'] }), 404, 'not_found');
});
