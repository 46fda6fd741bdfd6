/** Requests of a node while their index is being deleted, by that node and by another one. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createEngine } from '../../../src/index/engine/native.ts';
import { openBlobCache } from '../../../src/index/storage/local-blob-cache.ts';
import { createService } from '../../../src/service/create-service.ts';
import { MemoryLimiter } from '../../../src/service/limits/memory-limiter.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';
import { WordEncoder } from '../../support/encoder/word-encoder.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { generousLimits } from '../../support/stages/catalog-fixture.ts';
import { contextOf } from '../../support/stages/service-stage.ts';
import { hookCatalog, wrongAnswers } from './deleted-meanwhile.ts';

const servers = useStageServers();

it('a request whose index is deleted at any moment answers as before, or 404', async () => {
  await using stage = await servers.openStage();
  const { objects } = stage;
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const catalog = { ...stage.catalog, close: async () => undefined };
  const hooked = hookCatalog(catalog);
  const directory = path.join(await newDirectory(), 'cache');
  const cache = await openBlobCache({ directory, objects, bytesMax: 2 ** 30, onError });
  const service = await createService({
    catalog,
    encoders: new WordEncoder(),
    engine: createEngine({ threads: 1, kernel: 'auto' }),
    blobs: { catalog, objects, cache, nodeId: randomUUID(), replacedKeptMs: 3_600_000 },
    limiter: new MemoryLimiter(),
    keyPepper: new Uint8Array(32),
    modelOfMoment: (name = 'words') => ({ name }),
    exactTokenVectorsMax: 0,
    onBackgroundError: (_job, error) => onError(error),
  });
  const limits = { ...generousLimits, maxConcurrentRequests: 100 };
  const tenant = await catalog.createTenant({ id: randomUUID(), name: randomUUID(), limits });
  const context = () => contextOf(tenant, Date.now());
  let deletions = 0;
  const erase = (id: string): Promise<unknown> => {
    deletions += 1;
    // Every second time another node deletes it.
    return deletions % 2 === 0
      ? service.deleteIndex(context(), id)
      : stage.catalog.deleteIndex(tenant.id, id);
  };
  expect(await wrongAnswers({ service, hooked, context, erase })).toEqual([]);
  await service.drain();
});
