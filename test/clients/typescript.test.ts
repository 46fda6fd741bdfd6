/** The TypeScript client against the real service. */
import { expect, test, vi } from 'vitest';
import { ApiError, Maxsimd } from '../../clients/typescript/src/index.ts';
import { useSharedStage } from '../support/running/stage.ts';
import type { TestTenant } from '../support/commands/operators.ts';

const stage = useSharedStage();
vi.setConfig({ testTimeout: 300_000 });
const clientOf = (tenant: TestTenant, options: object = {}): Maxsimd =>
  new Maxsimd({ url: stage.server.url, apiKey: tenant.key, ...options });

const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was fulfilled');
};

test('an index, from its making to its end', async () => {
  const client = clientOf(stage.tenant);
  expect(await client.readiness()).toMatchObject({ status: 'ready' });
  const index = await client.createIndex({ name: 'whole', metadata_schema: { kind: 'string' } });
  expect(await client.getIndex(index.id)).toEqual({ ...index, recall: null });
  expect(await client.listIndexes()).toContainEqual(index);

  const answer = await client.upsert(index.id, [
    { doc_id: 'bee/1', text: 'Honey bees dance to tell where flowers are.', metadata: { kind: 'insect' } },
    { doc_id: 'whale', text: 'The blue whale is the largest animal.', metadata: { kind: 'mammal' } },
    { doc_id: 'nothing', text: '   ' },
  ]);
  expect(answer).toMatchObject({ upserted_documents: 2, failed: [{ doc_id: 'nothing' }] });

  const found = await client.search(index.id, { query: 'how do insects communicate?' });
  expect(found.results.map(({ doc_id }) => doc_id)).toEqual(['bee/1', 'whale']);
  const [several] = (
    await client.query(index.id, [
      { query: 'insects', where: { kind: { in: ['mammal'] } }, group_by_document: true },
    ])
  ).results;
  expect(several?.results.map(({ doc_id, chunks }) => [doc_id, chunks?.length])).toEqual([['whale', 1]]);
  const dry = await client.deleteDocuments(index.id, { where: { kind: { exists: true } }, dry_run: true });
  expect(dry).toMatchObject({ deleted: 0, more: false, matching: expect.any(Number) });
  expect(await client.deleteDocuments(index.id, { where: { kind: { in: ['reptile'] } } })).toEqual({
    deleted: 0,
    more: false,
  });
  const grouped = await client.search(index.id, {
    query: 'insects',
    where: { kind: { not: 'mammal' } },
    group_by_document: true,
    exact: true,
  });
  expect(grouped.results.map(({ doc_id, chunks }) => [doc_id, chunks?.length])).toEqual([['bee/1', 1]]);
  const counted = await client.facets(index.id, { fields: ['kind'], limit: 1 });
  expect(counted.facets[0]?.values).toEqual([{ value: 'insect', count: 1 }]);
  const year = new Date('2100-01-01T00:00:00Z');
  expect(await client.setExpiry(index.id, 'whale', year)).toMatchObject({ expires_at: year.toISOString() });
  expect(await client.setExpiry(index.id, 'whale', null)).not.toHaveProperty('expires_at');
  const fish = [{ doc_id: 'cod', text: 'A cod is a fish.' }];
  await client.upsert(index.id, fish, { expiresAt: '2100-01-01T01:00:00+01:00' });
  expect(await client.getDocument(index.id, 'cod')).toMatchObject({ expires_at: year.toISOString() });
  await client.setExpiry(index.id, 'cod', new Date(0));
  await expect(client.getDocument(index.id, 'cod')).rejects.toMatchObject({ status: 404 });
  const filtered = await client.search(index.id, { query: 'insects', filter: { kind: 'mammal' } });
  expect(filtered.results.map(({ doc_id, metadata }) => [doc_id, metadata])).toEqual([
    ['whale', { kind: 'mammal' }],
  ]);
  const scored = await client.score({
    query: 'largest animal',
    documents: [
      { doc_id: 'a', text: 'An elephant is big.' },
      { doc_id: 'b', text: 'The blue whale is the largest animal.' },
    ],
    return_components: true,
  });
  expect(scored.results[0]).toMatchObject({ doc_id: 'b', components: { maxsim: expect.any(Number) } });

  const bee = { doc_id: 'bee/1', metadata: { kind: 'insect' }, chunk_count: 1 };
  expect(await client.getDocument(index.id, 'bee/1')).toEqual(bee);
  const other = { ...bee, metadata: { kind: 'insect', checked: true } };
  expect(await client.updateMetadata(index.id, 'bee/1', { kind: 'insect', old: 1 })).toMatchObject({
    metadata: { old: 1 },
  });
  expect(await client.mergeMetadata(index.id, 'bee/1', { checked: true, old: null })).toEqual(other);
  const listed = [];
  for await (const document of client.listDocuments(index.id)) listed.push(document);
  expect(listed).toEqual([other, { doc_id: 'whale', metadata: { kind: 'mammal' }, chunk_count: 1 }]);
  const insects = [];
  const chosen = { where: { kind: 'insect' }, fields: ['checked'] };
  for await (const document of client.listDocuments(index.id, chosen)) insects.push(document);
  expect(insects).toEqual([{ ...other, metadata: { checked: true } }]);
  expect(await client.countDocuments(index.id)).toEqual({ documents: 2, chunks: 2 });
  const next = await client.createIndex({ name: 'next' });
  expect(await client.swapIndexNames(next.id, index.id)).toEqual({ ...next, name: 'whole' });
  expect(await client.getIndex(index.id)).toEqual({ ...index, name: 'next', recall: null });
  expect(await client.getIndex('name:next')).toMatchObject({ id: index.id });
  expect(await client.countDocuments('name:next')).toEqual({ documents: 2, chunks: 2 });
  expect(await client.swapIndexNames('name:next', 'name:whole')).toEqual({ ...index, name: 'whole' });
  const same = { name: 'whole', metadata_schema: { kind: 'string' }, if_exists: 'return' } as const;
  expect(await client.createIndex(same)).toEqual({ ...index, name: 'whole' });
  expect(await client.renameIndex(index.id, 'former')).toEqual({ ...index, name: 'former' });
  expect(await client.setMatchFields(index.id, ['kind'])).toMatchObject({ match_fields: ['kind'] });
  expect(await client.setMatchFields('name:former', [])).toEqual({ ...index, name: 'former' });
  const matched = await client.createIndex({ name: 'matched', match_fields: ['part.number'] });
  expect((await client.getIndex(matched.id)).match_fields).toEqual(['part.number']);
  const part = { doc_id: 'a', text: 'one', metadata: { part: { number: 'E-7' } } };
  await client.upsert(matched.id, [part, { doc_id: 'b', text: 'two' }]);
  const named = { query: 'about e7', match: { weight: 2 }, return_components: true };
  const [{ components } = {}] = (await client.search(matched.id, named)).results;
  expect(components?.matches).toMatchObject([{ field: 'part.number', value: 'E-7', start: 6, end: 8 }]);

  expect(await client.deleteDocument(index.id, 'bee/1')).toEqual({ deleted: true });
  expect(await client.deleteDocument(index.id, 'bee/1')).toEqual({ deleted: false });
  expect((await client.usage()).usage.document_upserts).toBeGreaterThan(1);
  const activity = (await client.activity()).data.find(({ index_id }) => index_id === index.id);
  expect(activity?.hour).toMatchObject({ searches: expect.any(Number), errors: 0 });
  expect(await client.deleteIndex(index.id)).toEqual({ deleted: true });
});

test('errors carry status, code, issues and the request id', async () => {
  const client = clientOf(stage.tenant);
  const missing = await rejection(
    client.search('00000000-0000-4000-8000-000000000000', { query: 'q' }, { requestId: 'mine-1' }),
  );
  expect(missing).toBeInstanceOf(ApiError);
  expect(missing).toMatchObject({ status: 404, code: 'not_found', requestId: 'mine-1', issues: [] });
  const invalid = await rejection(client.score({ query: '', documents: [] }));
  expect(invalid).toMatchObject({
    status: 422,
    code: 'validation_error',
    requestId: expect.stringMatching(/./),
  });
  expect((invalid as ApiError).issues.map((issue) => issue.path)).toEqual(['query', 'documents']);
  const stranger = new Maxsimd({ url: stage.server.url, apiKey: 'qkv_live_wrong' });
  expect(await rejection(stranger.usage())).toMatchObject({ status: 401, code: 'authentication_failed' });
});

test('an import sends every document, reports the refused ones, and keeps the last of a repeated id', async () => {
  const client = clientOf(stage.tenant);
  const { id } = await client.createIndex({ name: 'imported' });
  async function* documents() {
    for (let number = 0; number < 130; number += 1)
      yield { doc_id: `d${number}`, text: `stone number ${number}` };
    yield { doc_id: 'spaces', text: '  ' };
    yield { doc_id: 'long', text: 'x'.repeat(100 * 1024 + 1) };
    yield { doc_id: 'd7', text: 'the river runs to the sea' };
  }
  const seen: number[] = [];
  const report = await client.import(id, documents(), {
    concurrency: 3,
    onProgress: (progress) => seen.push(progress.documents + progress.failed),
  });
  expect(report).toMatchObject({ documents: 131, chunks: 131 });
  expect(report.failed.toSorted((one, other) => one.doc_id.localeCompare(other.doc_id))).toEqual([
    { doc_id: 'long', error: expect.stringMatching(/^documents\.\d+\.text: /) },
    { doc_id: 'spaces', error: expect.stringMatching(/./) },
  ]);
  expect(seen.at(-1)).toBe(133);
  expect(seen.toSorted((one, other) => one - other)).toEqual(seen);
  const { results } = await client.search(id, { query: 'where does the river run', top_k: 1 });
  expect(results[0]?.doc_id).toBe('d7');
});

test('an import over the concurrency limit slows down and ends whole', async () => {
  const tenant = await stage.newTenant({ requestsPerMinute: 1_000_000, maxConcurrentRequests: 1 });
  const refusals: string[] = [];
  const client = clientOf(tenant, { onRetry: (error: ApiError) => refusals.push(error.code) });
  const { id } = await client.createIndex({ name: 'narrow' });
  const documents = Array.from({ length: 300 }, (_, at) => ({ doc_id: `d${at}`, text: `stone ${at}` }));
  expect(await client.import(id, documents, { concurrency: 3 })).toMatchObject({
    documents: 300,
    failed: [],
  });
  expect(new Set(refusals)).toEqual(new Set(['concurrency_limit_exceeded']));
});

test('over the request rate it waits as it is asked to, until the caller gives up', async () => {
  const tenant = await stage.newTenant({ requestsPerMinute: 2 });
  const stop = new AbortController();
  const waits: number[] = [];
  const client = clientOf(tenant, {
    onRetry: (error: ApiError, delayMs: number) => {
      expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded' });
      expect(delayMs).toBeGreaterThanOrEqual((error.retryAfterSeconds ?? 0) * 1000);
      waits.push(delayMs);
      stop.abort(new Error('enough'));
    },
  });
  await client.usage();
  await client.usage();
  expect(await rejection(client.usage({ signal: stop.signal }))).toMatchObject({ message: 'enough' });
  expect(waits).toHaveLength(1);
});
