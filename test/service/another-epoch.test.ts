/** When the catalog begins another epoch, a node forgets everything that it had cached. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { expect, it } from 'vitest';
import { generateApiKey, hashApiKey } from '../../src/catalog/api-key.ts';
import type { ClusterCatalog } from '../../src/catalog/cluster-contract.ts';
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
const keyPepper = new Uint8Array(32);

it('a node forgets keys, rows, usage, documents of results and open indexes', async () => {
  await using stage = await servers.openStage();
  const asked: string[] = [];
  let another = (): void => undefined;
  const { catalog: real } = stage;
  const catalog: ClusterCatalog = {
    ...real,
    watchEpoch: (onOther) => (another = onOther),
    findKey(...given) {
      asked.push('key');
      return real.findKey(...given);
    },
    getIndex(...given) {
      asked.push('row');
      return real.getIndex(...given);
    },
    usageTotals(...given) {
      asked.push('usage');
      return real.usageTotals(...given);
    },
    resolveVersions(...given) {
      asked.push('documents');
      return real.resolveVersions(...given);
    },
    changesSince(input) {
      asked.push(input.generation < 0 ? 'opening' : 'changes');
      return real.changesSince(input);
    },
  };
  const errors: unknown[] = [];
  const directory = await newDirectory();
  const cache = await openBlobCache({
    directory: path.join(directory, 'cache'),
    objects: stage.objects,
    bytesMax: 2 ** 30,
    onError: (error) => void errors.push(error),
  });
  // The clock stands still, so that nothing in the caches grows old.
  const nowMs = Date.now();
  const service = await createService({
    catalog,
    encoders: new WordEncoder(),
    engine: createEngine({ threads: 1, kernel: 'auto' }),
    blobs: { catalog, objects: stage.objects, cache, nodeId: randomUUID(), replacedKeptMs: 3_600_000 },
    limiter: new MemoryLimiter(),
    keyPepper,
    modelOfMoment: (name = 'words') => ({ name }),
    exactTokenVectorsMax: 0,
    onBackgroundError: (_job, error) => void errors.push(error),
    nowMs: () => nowMs,
  });
  const { id: keyId, apiKey } = generateApiKey();
  const tenant = await real.createTenant({
    id: randomUUID(),
    name: randomUUID(),
    limits: generousLimits,
    key: { id: keyId, hash: hashApiKey(apiKey, keyPepper) },
  });
  const context = () => contextOf(tenant, nowMs);
  const { id: indexId } = await service.createIndex(context(), { name: 'index', metadataSchema: '{}' });
  await service.upsertDocuments(context(), indexId, documentsOf({ a: 'some words' }));
  const search = async () => {
    (await service.admit(`Bearer ${apiKey}`)).permit.release();
    const { results } = await service.search(context(), indexId, {
      query: 'words',
      returnComponents: false,
    });
    expect(results).toMatchObject([{ docId: 'a' }]);
  };
  await search();
  asked.length = 0;
  another();
  await search();
  expect(new Set(asked)).toEqual(new Set(['key', 'row', 'usage', 'documents', 'opening']));
  expect(errors).toEqual([]);
  await service.drain();
});
