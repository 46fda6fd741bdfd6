/** Listing the documents that a condition matches: an addition of ours to the interface. */
import { expect, test } from 'vitest';
import {
  connect,
  expectError,
  expectInvalid,
  expectReply,
  type Client,
} from '../../../support/running/client.ts';
import { eventually } from '../../../support/running/eventually.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';
import { makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { documentPage } from '../../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';

const list = async (client: Client, id: string, body: object) =>
  expectReply(await client.listMatching(id, body), documentPage);
const docIdsOf = ({ data }: { readonly data: readonly { readonly doc_id: string }[] }) =>
  data.map(({ doc_id: docId }) => docId);

/** All pages; `between` runs after each. */
async function listAll(client: Client, id: string, body: object, between?: () => Promise<void>) {
  const listed: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await list(client, id, { ...body, ...(cursor !== undefined && { cursor }) });
    listed.push(...docIdsOf(page));
    await between?.();
    cursor = page.next_cursor;
  }
  return listed;
}

test('lists what conditions of each kind match, with the fields that are asked for, as a request alone', async () => {
  const { client } = await stage.newTenant();
  const { id } = await makeIndex(client);
  await put(client, id, [
    {
      doc_id: 'd',
      text: 'river',
      metadata: { kind: 'paper', year: 1967, tags: ['bees'], added: '2026-03-01' },
    },
    { doc_id: 'b', text: 'river', metadata: { kind: 'paper', year: 2004, status: 'draft' } },
    { doc_id: 'c', text: 'river', metadata: { kind: 'book', year: 2011, tags: ['flowers'] } },
    { doc_id: 'a', text: 'river' },
  ]);
  const before = await readUsage(client);
  for (const [where, expected] of [
    [{ kind: 'paper' }, 'bd'],
    [{ kind: { in: ['book', 'film'] } }, 'c'],
    [{ year: { gte: 2000, lt: 2010 } }, 'b'],
    [{ status: { not: 'draft' } }, 'acd'],
    [{ tags: { contains: 'bees' } }, 'd'],
    [{ tags: { contains_any: ['bees', 'flowers'] } }, 'cd'],
    [{ status: { exists: true } }, 'b'],
    [{ added: { after: '2026-01-01', before: '2026-12-31T18:00:00+01:00' } }, 'd'],
    [{ any_of: [{ kind: 'book' }, { year: { lt: 1970 } }] }, 'cd'],
    [{ kind: 'film' }, ''],
    [{}, 'abcd'],
    [undefined, 'abcd'],
  ] as const) {
    const page = await list(client, id, { where });
    expect([where, docIdsOf(page).join(''), page.next_cursor]).toEqual([where, expected, null]);
    expect((await listAll(client, id, { where, limit: 1 })).join('')).toBe(expected);
  }
  const { data } = await list(client, id, { where: { kind: 'paper' }, fields: ['year', 'absent', 'kind'] });
  expect(data).toEqual([
    { doc_id: 'b', metadata: { year: 2004, kind: 'paper' }, chunk_count: 1 },
    { doc_id: 'd', metadata: { year: 1967, kind: 'paper' }, chunk_count: 1 },
  ]);
  await list(client, id, { fields: [] });
  const { usage } = await readUsage(client);
  const pages = [2, 1, 1, 3, 1, 2, 1, 1, 2, 1, 4, 4].reduce((sum, each) => sum + each + 1, 0);
  expect(usage).toEqual({ ...before.usage, requests: before.usage.requests + pages + 3 });
});

test('hints at a field without a date where nothing is found, and at words of other products', async () => {
  const { client } = await stage.newTenant();
  const { id } = await makeIndex(client);
  await put(client, id, [{ doc_id: 'a', text: 'river', metadata: { day: 'Friday', at: '2026-11-27' } }]);
  const day = { day: { after: '2026-01-01' } };
  expect(await list(client, id, { where: day, fields: ['day'] })).toEqual({
    data: [],
    next_cursor: null,
    hint: expect.stringMatching(/^"day" is a date in no document, and has another value in 1;/),
  });
  const must = await list(client, id, { where: { must: [] } });
  expect(must.hint).toContain('"must" is the name of a field here');
  for (const where of [{ at: { after: '2026-01-01' } }, { at: { after: '2027-01-01' } }, {}])
    expect(await list(client, id, { where })).not.toHaveProperty('hint');
  expect(await list(client, id, {})).not.toHaveProperty('hint');
});

test('returns fields digit by digit, with their names as they were written', async () => {
  const { client } = stage;
  const { id } = await makeIndex(client);
  const metadata = '{"other":{"n":[2]},"\\u006e":1.0,"long":123456789012345678901}';
  const text = `{"documents":[{"doc_id":"a","text":"river","metadata":${metadata}}]}`;
  expect((await client.send('POST', `/v1/indexes/${id}/documents`, { rawBody: text })).status).toBe(200);
  const reply = await client.listMatching(id, { where: { n: 1 }, fields: ['long', 'n'] });
  expect(reply.text).toContain('"metadata":{"long":123456789012345678901,"\\u006e":1.0},');
});

test('a document that matches throughout is on one page exactly, although others come and go', async () => {
  const { client } = stage;
  const { id } = await makeIndex(client);
  const lasting = ['b', 'a/?#&=', 'Z', 'é', '💥', '\uffff', '10', '9'];
  const documents = lasting.map((doc_id) => ({ doc_id, text: 'river', metadata: { kept: true, turn: 0 } }));
  await put(client, id, [...documents, { doc_id: 'other', text: 'river' }]);
  const sorted = lasting.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  let turn = 0;
  const listed = await listAll(client, id, { where: { kept: true }, limit: 2 }, async () => {
    turn += 1;
    await client.deleteDocument(id, `a${turn - 1}`);
    await put(client, id, [
      { doc_id: `a${turn}`, text: 'stone', metadata: { kept: true } },
      ...documents.map((document) => ({ ...document, metadata: { kept: true, turn } })),
    ]);
  });
  expect(listed.filter((docId) => lasting.includes(docId))).toEqual(sorted);
  expect(new Set(listed).size).toBe(listed.length);

  const writing = Array.from({ length: 20 }, (_, n) =>
    put(client, id, [{ ...documents[n % documents.length]!, metadata: { kept: true, turn: n } }]),
  );
  const all = await listAll(client, id, { where: { kept: true }, limit: 3 });
  await Promise.all(writing);
  expect(all.filter((docId) => lasting.includes(docId))).toEqual(sorted);
});

test('leaves out documents from the moment at which they expire', async () => {
  const { client } = stage;
  const { id } = await makeIndex(client);
  await put(client, id, [{ doc_id: 'stays', text: 'river', metadata: { n: 1 } }]);
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const expiring = [{ doc_id: 'goes', text: 'river', metadata: { n: 1 } }];
  await client.send('POST', `/v1/indexes/${id}/documents?expires_at=${inAnHour}`, {
    body: { documents: expiring },
  });
  const matching = () => list(client, id, { where: { n: 1 } });
  const before = await matching();
  expect(docIdsOf(before)).toEqual(['goes', 'stays']);
  expect(before.data[0]).toMatchObject({ expires_at: inAnHour });
  const expiresAt = new Date(Date.now() + 1_000).toISOString();
  await client.send('PATCH', `/v1/indexes/${id}/documents/goes`, { body: { expires_at: expiresAt } });
  await eventually(async () => docIdsOf(await matching()).join() === 'stays');
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt));
});

test('refuses what is no condition, cursor, limit or index; a key that may only read may list', async () => {
  const tenant = await stage.newTenant();
  const { client } = tenant;
  const { id } = await makeIndex(client);
  await put(client, id, [{ doc_id: 'a', text: 'river', metadata: { n: 1 } }]);
  expectInvalid(await client.listMatching(id, { where: { n: { above: 1 } } }), 'where.n');
  for (const cursor of ['', '*', 'YQ==', 1])
    expectInvalid(await client.listMatching(id, { where: { n: 1 }, cursor }), 'cursor');
  expectInvalid(await client.listMatching(id, { limit: 1001 }), 'limit');
  expectInvalid(await client.listMatching(id, { fields: ['n', 'n'] }), 'fields.1');
  expectInvalid(await client.listMatching('not-a-uuid', {}), 'index_id');
  for (const where of [{ n: 1 }, {}])
    expectError(await client.listMatching(absentIndex, { where }), 404, 'not_found');
  const other = await stage.newTenant();
  expectError(await other.client.listMatching(id, { where: { n: 1 } }), 404, 'not_found');
  const reader = await stage.newKey(tenant.id, '--read-only');
  const reading = connect(client.url, reader.key);
  expect(docIdsOf(await list(reading, id, { where: { n: 1 } }))).toEqual(['a']);
});
