/** Documents that expire, where two nodes share the index. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createEngine } from '../../src/index/engine/native.ts';
import { openBlobCache } from '../../src/index/storage/local-blob-cache.ts';
import { createService } from '../../src/service/create-service.ts';
import { MemoryLimiter } from '../../src/service/limits/memory-limiter.ts';
import { useStageServers } from '../support/cluster/stage-servers.ts';
import { WordEncoder } from '../support/encoder/word-encoder.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { generousLimits } from '../support/stages/catalog-fixture.ts';
import { contextOf, documentsOf } from '../support/stages/service-stage.ts';

const servers = useStageServers();

it('they are in no answer of any node from that moment on, and any node ends them', async () => {
  await using stage = await servers.openStage();
  const { catalog, objects } = stage;
  const errors: unknown[] = [];
  const clock = { ms: Date.now() };
  const newNode = async () => {
    const onError = (error: unknown): void => void errors.push(error);
    const directory = path.join(await newDirectory(), 'cache');
    const cache = await openBlobCache({ directory, objects, bytesMax: 2 ** 30, onError });
    return await createService({
      // Both nodes close it.
      catalog: { ...catalog, close: async () => undefined },
      encoders: new WordEncoder(),
      engine: createEngine({ threads: 1, kernel: 'auto' }),
      blobs: { catalog, objects, cache, nodeId: randomUUID(), replacedKeptMs: 3_600_000 },
      limiter: new MemoryLimiter(),
      keyPepper: new Uint8Array(32),
      modelOfMoment: (name = 'words') => ({ name }),
      exactTokenVectorsMax: 0,
      onBackgroundError: (_job, error) => onError(error),
      nowMs: () => clock.ms,
    });
  };
  const [one, other] = [await newNode(), await newNode()];
  const limits = { ...generousLimits, maxConcurrentRequests: 100 };
  const tenant = await catalog.createTenant({ id: randomUUID(), name: randomUUID(), limits });
  const context = () => contextOf(tenant, clock.ms);
  const { id } = await one.createIndex(context(), { name: 'index', metadataSchema: '{}' });
  const at = clock.ms + 10_000;
  await one.upsertDocuments(context(), id, documentsOf({ a: 'word a', b: 'word b' }), { expiresAtMs: at });
  await one.upsertDocuments(context(), id, documentsOf({ c: 'word c' }), { expiresAtMs: at + 1 });
  await other.upsertDocuments(context(), id, documentsOf({ d: 'word d' }));
  const answers = async (node: typeof one) => {
    const { results } = await node.search(context(), id, { query: 'word', returnComponents: false });
    const { documents } = await node.listDocuments(context(), id, { limit: 10 });
    const counted = await node.countDocuments(context(), id);
    const values = await node.countValues(context(), id, { fields: ['n'], limit: 1 });
    expect([counted.documents, values.documents]).toEqual([documents.length, documents.length]);
    const found = results.map(({ docId }) => docId).toSorted();
    expect(documents.map(({ docId }) => docId)).toEqual(found);
    return found.join('');
  };
  const stored = async () => (await catalog.usageTotals(tenant.id, '2000-01')).documents;
  for (const node of [one, other]) expect(await answers(node)).toBe('abcd');
  await other.updateDocument(context(), id, 'b', { expiresAtMs: at + 2 });
  // Merges of both nodes at once all count.
  const merges = ['p', 'q', 'r', 's'].map((name, turn) =>
    [one, other][turn % 2]!.updateDocument(context(), id, 'd', { metadataMerge: `{"${name}":1.0}` }),
  );
  await Promise.all(merges);
  const { metadata } = await one.getDocument(context(), id, 'd');
  expect(metadata.split(/[{,}]/).toSorted()).toEqual(['', '', '"p":1.0', '"q":1.0', '"r":1.0', '"s":1.0']);
  clock.ms = at;
  for (const node of [other, one]) expect(await answers(node)).toBe('bcd');
  expect(await stored()).toBe(3);
  // The first one that met the document ended it for both.
  expect([other, one].map((node) => node.statistics().repeats.expired)).toEqual([1, 0]);
  // Both nodes end the same documents at once.
  clock.ms = at + 1;
  expect(await Promise.all([answers(one), answers(other)])).toEqual(['bd', 'bd']);
  clock.ms = at + 2;
  await Promise.all([one.maintain(), other.maintain()]);
  expect(await stored()).toBe(1);
  for (const node of [one, other]) expect(await answers(node)).toBe('d');
  expect(errors).toEqual([]);
  await Promise.all([one.drain(), other.drain()]);
});
