/** Reads that take long wait for each other. Admission, searches and commits do not wait for them. */
import { expect, it } from 'vitest';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { lockRows, newSharedDatabase } from '../../support/cluster/servers.ts';
import { newIndex, newTenant, usageOf } from '../../support/stages/catalog-fixture.ts';

it.each(['counts', 'lists of documents', 'openings of indexes'] as const)(
  '%s of many tenants leave connections for admission, searches and commits',
  async (kind) => {
    const url = await newSharedDatabase();
    const catalog = await openPostgresCatalog({ url, keyPepper: new Uint8Array(32) });
    const { id: tenantId } = await newTenant(catalog);
    const { id } = await newIndex(catalog, tenantId);
    const read = {
      counts: () => catalog.countDocuments(id, 0),
      'lists of documents': () => catalog.listDocuments(id, { limit: 1, nowMs: 0, bytesMax: 1 }),
      'openings of indexes': () => catalog.changesSince({ indexId: id, generation: -1, segmentIds: [] }),
    }[kind];
    // Makes each read take long.
    const lock = await lockRows(url, 'LOCK TABLE versions IN ACCESS EXCLUSIVE MODE');
    const reads = Promise.allSettled(Array.from({ length: 40 }, (): Promise<unknown> => read()));
    try {
      expect(await catalog.findKey('nobody')).toBeUndefined();
      expect(await catalog.readHead(id)).toMatchObject({ generation: 0 });
      expect(await catalog.allocateIds(1)).toHaveLength(1);
      await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    } finally {
      await lock.release();
    }
    for (const one of await reads) {
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'service_unavailable' });
    }
    await catalog.close();
  },
);
