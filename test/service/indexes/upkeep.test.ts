/** Background work on indexes. */
import { describe, expect, it } from 'vitest';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { openServiceStage, rejection } from '../../support/stages/service-stage.ts';
import { wordModel } from '../../support/encoder/word-encoder.ts';

describe('upkeep', () => {
  it('gives deleted data back also where no encoder serves the model of the index', async () => {
    const directory = await newDirectory();
    const before = await openServiceStage(directory);
    const tenant = await before.newTenant();
    const [used, empty] = [await tenant.createIndex(), await tenant.createIndex()];
    await tenant.upsert(used, { a: 'red', b: 'green', c: 'blue' });
    for (const id of ['a', 'b']) await before.service.deleteDocument(tenant.context(), used, id);
    await before.service.drain();

    await using stage = await openServiceStage(directory);
    stage.encoder.served = [];
    await stage.service.maintain();
    expect(stage.errors).toEqual([]);
    const { segments, recordsLive } = stage.service.statistics();
    expect(segments.map(({ state, records }) => [state, records])).toEqual([['sealed', 1]]);
    expect(recordsLive).toBe(1);
    await expect.poll(() => stage.service.statistics().recordsVerified).toBe(1);

    // Requests that find the index open use the same one.
    expect(await stage.service.deleteDocument(tenant.context(), used, 'a')).toBe(false);
    expect(await stage.service.deleteDocument(tenant.context(), used, 'c')).toBe(true);
    stage.encoder.served = [wordModel];
    for (const id of [used, empty]) {
      const search = { query: 'blue', returnComponents: false };
      expect((await stage.service.search(tenant.context(), id, search)).results).toEqual([]);
    }
  });

  it('keeps an index that it has opened from a model of another dimension', async () => {
    const directory = await newDirectory();
    const before = await openServiceStage(directory);
    const tenant = await before.newTenant();
    const id = await tenant.createIndex();
    await tenant.upsert(id, { a: 'red' });
    await before.service.drain();

    await using stage = await openServiceStage(directory);
    stage.encoder.served = [{ ...wordModel, dim: wordModel.dim / 2 }];
    await stage.service.maintain();
    expect(stage.service.statistics().openIndexes).toBe(1);
    const search = { query: 'red', returnComponents: false };
    expect(await rejection(stage.service.search(tenant.context(), id, search))).toMatchObject({
      code: 'service_unavailable',
      retryAfterSeconds: expect.any(Number) as number,
    });
  });
});
