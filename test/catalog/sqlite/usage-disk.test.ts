/** Usage on a disk that is full, read-only, or loses power. */
import Database from 'better-sqlite3';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { Disk, noDisks } from '../../support/machine/disk.ts';
import { syncedFiles } from '../../support/machine/disk-state.ts';
import { eventually } from '../../support/running/eventually.ts';
import { generousLimits, month, usageOf } from '../../support/stages/catalog-fixture.ts';
import { openRemoteCatalog } from '../../support/stages/remote-catalog.ts';
import type { RemoteCatalog } from '../../support/stages/remote-catalog.ts';

if (noDisks !== undefined) console.log(`skipped: ${noDisks}`);

const tenantId = 'tenant';
const event = usageOf(tenantId, { requests: 1, searches: 1, inputTokens: 3n });

function counted(requests: number) {
  return { requests, searches: requests, inputTokens: 3n * BigInt(requests) };
}

async function record(catalog: RemoteCatalog, events: number): Promise<void> {
  await Promise.all(Array.from({ length: events }, () => catalog.recordUsage(event)));
}

async function whenNothingWaits(catalog: RemoteCatalog): Promise<void> {
  await eventually(async () => (await catalog.usageWaiting()) === 0);
}

/** Usage needs a tenant. Without one it would be erased as that of an erased tenant. */
async function createTenant(catalog: RemoteCatalog): Promise<void> {
  await catalog.createTenant({ id: tenantId, name: 'tenant', limits: generousLimits });
}

describe.skipIf(noDisks !== undefined)('usage', () => {
  it.each([
    ['full', (disk: Disk, on: boolean) => disk.setFreeBytes(on ? 0 : undefined)],
    ['read-only', (disk: Disk, on: boolean) => disk.setReadOnly(on)],
  ])('goes on, in memory, while the disk is %s, and is written once when it is not', async (_state, set) => {
    const disk = await Disk.make();
    const { catalog, notices, kill } = await openRemoteCatalog(disk.directory, disk.environment);
    await createTenant(catalog);
    await record(catalog, 10);
    set(disk, true);
    await record(catalog, 200);
    expect(await catalog.usageWaiting()).toBe(1);
    expect(await catalog.usageTotals(tenantId, month)).toMatchObject(counted(210));
    expect(notices).toEqual(['usage waits in memory to be written']);
    set(disk, false);
    await whenNothingWaits(catalog);
    await record(catalog, 1);
    expect(notices.at(-1)).toBe('usage is written to the disk again');
    await kill();
    const after = await openCatalog({ directory: disk.directory });
    expect(await after.usageTotals(tenantId, month)).toMatchObject(counted(211));
    await after.close();
  });

  it('loses nothing of it to a power cut once syncs that failed go well again', async () => {
    const disk = await Disk.make({ logged: true });
    const { catalog, notices, kill } = await openRemoteCatalog(disk.directory, disk.environment);
    await createTenant(catalog);
    await record(catalog, 10);
    disk.state.set('failedSyncs', syncedFiles['the log of the usage ledger']);
    await record(catalog, 10);
    await eventually(() => notices.find((notice) => notice === 'usage could not be synced to the disk'));
    disk.state.set('failedSyncs', 0);
    await record(catalog, 10);
    const survives = await eventually(() => requestsAfterPowerCut(disk) === 30, { everyMs: 50 });
    expect(survives).toBe(true);
    await kill();
  });

  it('loses no more than its last second to a power cut, also while its log is restarted', async () => {
    const disk = await Disk.make({ logged: true });
    const { catalog, kill } = await openRemoteCatalog(disk.directory, disk.environment);
    await createTenant(catalog);
    let recorded = 0;
    for (let cut = 0; cut < 4; cut++) {
      for (let burst = 0; burst < 9; burst++) await record(catalog, 250);
      recorded += 9 * 250;
      const began = performance.now();
      let lackedAt = began;
      await eventually(
        () => {
          const looksAt = performance.now();
          if (requestsAfterPowerCut(disk) === recorded) return true;
          lackedAt = looksAt;
          return undefined;
        },
        { everyMs: 50 },
      );
      // A second, and the turns that a busy machine gives late.
      expect(lackedAt - began).toBeLessThan(30_000);
    }
    await kill();
  });
});

function requestsAfterPowerCut(disk: Disk): number {
  const database = new Database(path.join(disk.cutPower(), 'usage.db'));
  try {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    return database.prepare<[], number>('SELECT total(requests) FROM usage_months').pluck().get() ?? 0;
  } finally {
    database.close();
  }
}
