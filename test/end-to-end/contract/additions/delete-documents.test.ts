/** Deleting documents by their metadata: an addition of ours to the interface. */
import { describe, expect, test } from 'vitest';

import { expectError, expectInvalid, expectReply, type Client } from '../../../support/running/client.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { deletedDocuments, upserted } from '../../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';

/** Documents `d0`, `d1`, ... with their numbers as metadata. */
async function fill(client: Client, count: number): Promise<string> {
  const { id } = await makeIndex(client);
  for (let first = 0; first < count; first += 50) {
    const documents = Array.from({ length: Math.min(50, count - first) }, (_, place) => ({
      doc_id: `d${first + place}`,
      text: 'river',
      metadata: { n: first + place, even: (first + place) % 2 === 0 },
    }));
    await put(client, id, documents);
  }
  return id;
}

const remove = async (client: Client, id: string, body: unknown) =>
  expectReply(await client.deleteDocuments(id, body), deletedDocuments);

const left = async (client: Client, id: string): Promise<string[]> =>
  (await find(client, id, { query: 'river', top_k: 100 })).results.map((result) => result.doc_id).toSorted();

describe('Deleting by metadata', () => {
  test('removes what matches, at most `limit` at a time, and says whether more is left', async () => {
    const { client } = await stage.newTenant();
    const id = await fill(client, 20);
    expect(await remove(client, id, { where: { n: { gte: 20 } } })).toEqual({ deleted: 0, more: false });
    expect(await remove(client, id, { filter: { even: true }, where: { n: { lt: 6 } } })).toEqual({
      deleted: 3,
      more: false,
    });
    const odd = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19];
    const even = [6, 8, 10, 12, 14, 16, 18];
    expect(await left(client, id)).toEqual([...odd, ...even].map((n) => `d${n}`).toSorted());
    expect(await remove(client, id, { filter: { even: false }, limit: 4 })).toEqual({
      deleted: 4,
      more: true,
    });
    expect(await remove(client, id, { filter: { even: false }, limit: 6 })).toEqual({
      deleted: 6,
      more: false,
    });
    expect(await left(client, id)).toEqual(even.map((n) => `d${n}`).toSorted());
    expect((await readUsage(client)).usage.documents).toBe(7);
    expect(await remove(client, id, { where: { n: { not: 8 } } })).toEqual({ deleted: 6, more: false });
    expect(await left(client, id)).toEqual(['d8']);
    // The names are free, and what is stored under them is other documents.
    expectReply(await client.upsert(id, [{ doc_id: 'd1', text: 'river', metadata: { n: 100 } }]), upserted);
    expect(await remove(client, id, { where: { n: { lt: 100 } } })).toEqual({ deleted: 1, more: false });
    expect(await left(client, id)).toEqual(['d1']);
  });

  test('counts as one request, and as nothing else', async () => {
    const { client } = await stage.newTenant();
    const id = await fill(client, 3);
    const before = await readUsage(client);
    await remove(client, id, { filter: { even: true } });
    await remove(client, id, { filter: { even: true } });
    const { usage } = await readUsage(client);
    expect(usage).toEqual({ ...before.usage, requests: before.usage.requests + 3, documents: 1 });
  });

  test('counts what matches in a dry run, and changes nothing', async () => {
    const { client } = await stage.newTenant();
    const id = await fill(client, 12);
    const before = await readUsage(client);
    const dry = (body: object) => remove(client, id, { ...body, dry_run: true });
    expect(await dry({ where: { n: { gte: 4 } }, limit: 2 })).toEqual({
      deleted: 0,
      more: false,
      matching: 8,
    });
    expect(await dry({ filter: { even: true } })).toEqual({ deleted: 0, more: false, matching: 6 });
    expect(await dry({ where: { n: 12 } })).toEqual({ deleted: 0, more: false, matching: 0 });
    expectInvalid(await client.deleteDocuments(id, { where: {}, dry_run: true }));
    expectInvalid(await client.deleteDocuments(id, { where: { n: 1 }, dry_run: 'yes' }), 'dry_run');
    const { usage } = await readUsage(client);
    expect(usage).toEqual({ ...before.usage, requests: before.usage.requests + 6 });
    expect(await left(client, id)).toHaveLength(12);
    expect(await remove(client, id, { where: { n: { gte: 4 } }, dry_run: false })).toEqual({
      deleted: 8,
      more: false,
    });
  });

  test('finds times as programs write them, and hints at fields without a date', async () => {
    const { client } = await stage.newTenant();
    const { id } = await makeIndex(client);
    const times = ['2026-11-27 09:30:00+00:00', '2026-11-27T10:30', '27.11.2026'];
    await put(
      client,
      id,
      times.map((at, place) => ({
        doc_id: `d${place}`,
        text: 'river',
        metadata: { at, day: `day ${place}` },
      })),
    );
    const found = await find(client, id, { query: 'river', where: { at: { after: '2026-01-01' } } });
    expect(found.results.map((result) => result.doc_id).toSorted()).toEqual(['d0', 'd1']);
    expect(found.hint).toBeUndefined();
    const none = await find(client, id, { query: 'river', where: { day: { after: '2026-01-01' } } });
    expect(none).toMatchObject({
      results: [],
      hint: expect.stringMatching(/"day" is a date in no document.* in 3;/),
    });
    const where = { day: { before: '2027-01-01' } };
    expect(await remove(client, id, { where })).toMatchObject({
      deleted: 0,
      hint: expect.stringContaining('"day"'),
    });
    const late = await find(client, id, { query: 'river', where: { at: { after: '2027-01-01' } } });
    expect(late).not.toHaveProperty('hint');
    expect(await remove(client, id, { where: { at: { before: '2026-11-27T10:00:00Z' } } })).toEqual({
      deleted: 1,
      more: false,
    });
  });

  test('deletes nothing without a condition, nor by one that is none', async () => {
    const { client } = stage;
    const id = await fill(client, 2);
    for (const body of [
      {},
      { where: {} },
      { filter: {} },
      { filter: {}, where: {}, limit: 1 },
      { limit: 1 },
    ]) {
      expectInvalid(await client.deleteDocuments(id, body));
    }
    for (const where of [
      { any_of: [{}] },
      { any_of: [{ n: 1 }, { any_of: [{}] }] },
      { n: { not: { in: [] } } },
      { n: { not: { in: [], gt: 3 } }, any_of: [{}, { n: 0 }] },
      { n: { not: { contains_any: [] } } },
      { n: { not: { after: '2026-11-27', before: '2026-11-26T23:59:59Z' } } },
      { any_of: [{ n: { exists: true } }, { n: { exists: false } }] },
      { n: { not: { gt: 5, lt: 1 } } },
      { any_of: [{ n: 1 }, { n: { not: 1 } }] },
      { any_of: [{ n: { lt: 5 } }, { n: { not: { lt: 5 } } }] },
    ]) {
      expectInvalid(await client.deleteDocuments(id, { where }));
      expectInvalid(await client.deleteDocuments(id, { where, filter: {} }));
    }
    expect(await remove(client, id, { where: { any_of: [] } })).toEqual({ deleted: 0, more: false });
    expectInvalid(await client.deleteDocuments(id, { where: { n: { above: 1 } } }), 'where.n');
    for (const limit of [0, 1001, 1.5, '1']) {
      expectInvalid(await client.deleteDocuments(id, { where: { n: 1 }, limit }), 'limit');
    }
    expectInvalid(await client.deleteDocuments('not-a-uuid', { where: { n: 1 } }), 'index_id');
    expectError(await client.deleteDocuments(absentIndex, { where: { n: 1 } }), 404, 'not_found');
    expect(await left(client, id)).toEqual(['d0', 'd1']);
    // All that are there now, and not whatever there may be; a condition of every document beside a filter is the filter.
    expect(await remove(client, id, { where: { any_of: [{}] }, filter: { n: 0 } })).toEqual({
      deleted: 1,
      more: false,
    });
    expect(await remove(client, id, { where: { n: { gte: 0 } } })).toEqual({ deleted: 1, more: false });
    const { id: empty } = await makeIndex(client);
    expect(await remove(client, empty, { where: { n: { lt: 1 } } })).toEqual({ deleted: 0, more: false });
  });

  test('leaves a document that is replaced meanwhile, and loses none that is written', async () => {
    const { client } = stage;
    const id = await fill(client, 40);
    const writing = Array.from({ length: 40 }, (_, n) =>
      put(client, id, [{ doc_id: `d${n}`, text: 'river', metadata: { n: 1000 + n } }]),
    );
    const [{ deleted }] = await Promise.all([remove(client, id, { where: { n: { lt: 1000 } } }), ...writing]);
    expect(deleted).toBeLessThanOrEqual(40);
    expect(await left(client, id)).toHaveLength(40);
  });
});
