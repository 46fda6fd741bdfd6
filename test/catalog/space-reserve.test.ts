/** Deletions on a full disk: the reserve is kept for them alone. */
import { statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { reserveBytes } from '../../src/catalog/space-reserve.ts';
import { Disk, noDisks } from '../support/machine/disk.ts';
import { eventually } from '../support/running/eventually.ts';
import { DocumentWriter, newTenant, usageOf } from '../support/stages/catalog-fixture.ts';
import { openRemoteCatalog } from '../support/stages/remote-catalog.ts';

if (noDisks !== undefined) console.log(`skipped: ${noDisks}`);

const unavailable = { code: 'service_unavailable' };

function isThere(disk: Disk): boolean {
  return statSync(path.join(disk.directory, 'reserve'), { throwIfNoEntry: false })?.size === reserveBytes;
}

describe.skipIf(noDisks !== undefined)('a full disk', () => {
  it('takes deletes, thousands of them, and nothing that adds, until there is room again', async () => {
    const disk = await Disk.make();
    const { catalog, notices, kill } = await openRemoteCatalog(disk.directory, disk.environment);
    const { id: tenantId } = await newTenant(catalog);
    const writer = await DocumentWriter.start(catalog, tenantId);
    const docIds = Array.from({ length: 3_000 }, (_, place) => `document ${place}`);
    for (let at = 0; at < docIds.length; at += 500) {
      await writer.upsert(docIds.slice(at, at + 500), JSON.stringify({ filler: 'x'.repeat(200) }));
    }
    expect(isThere(disk)).toBe(true);

    disk.setFreeBytes(0);
    for (let at = 0; at < docIds.length; at += 100) {
      const deleted = await Promise.all(docIds.slice(at, at + 100).map((docId) => writer.delete(docId)));
      expect(new Set(deleted.map(({ outcome }) => outcome))).toEqual(new Set(['committed']));
    }
    expect(isThere(disk)).toBe(false);
    await expect(catalog.allocateIds(1)).rejects.toMatchObject(unavailable);
    await expect(writer.commit([])).rejects.toMatchObject(unavailable);
    await catalog.recordUsage(usageOf(tenantId, { requests: 1 }));
    expect(await catalog.usageWaiting()).toBe(1);
    await catalog.deleteIndex(tenantId, writer.index.id);
    await catalog.setTenantSuspended(tenantId, true);
    await catalog.deleteTenant(tenantId);
    await catalog.purgeDeleted();
    // The server checks for room every few seconds.
    await eventually(() => notices.find((notice) => notice.startsWith('the disk is full')));
    expect(notices).not.toContain('there is space on the disk again');

    disk.setFreeBytes(3 * reserveBytes);
    await eventually(() => isThere(disk));
    await eventually(async () => (await catalog.allocateIds(1).catch(() => undefined)) ?? undefined);
    await eventually(() => notices.find((notice) => notice === 'there is space on the disk again'));
    await kill();
  });

  it('takes deletes of the command line beside a server too', async () => {
    const disk = await Disk.make();
    const { catalog, kill } = await openRemoteCatalog(disk.directory, disk.environment);
    const { id: tenantId } = await newTenant(catalog);
    disk.setFreeBytes(0);
    const beside = await openRemoteCatalog(disk.directory, disk.environment, { owned: false });
    expect(await beside.catalog.deleteTenant(tenantId)).toEqual({ indexIds: [] });
    await beside.catalog.close();
    expect(await catalog.getTenant(tenantId)).toBeUndefined();
    await kill();
  });
});
