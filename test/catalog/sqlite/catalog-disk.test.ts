/** Acknowledged commits stay, even if earlier syncs failed. */
import { describe, expect, it } from 'vitest';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { Disk, noDisks } from '../../support/machine/disk.ts';
import { syncedFiles } from '../../support/machine/disk-state.ts';
import { generousLimits } from '../../support/stages/catalog-fixture.ts';
import { openRemoteCatalog, type CatalogProcess } from '../../support/stages/remote-catalog.ts';

if (noDisks !== undefined) console.log(`skipped: ${noDisks}`);

const open = (disk: Disk): Promise<CatalogProcess> => openRemoteCatalog(disk.directory, disk.environment);

async function create({ catalog }: CatalogProcess, id: string): Promise<void> {
  await catalog.createTenant({ id, name: id, limits: generousLimits });
}

/** A disk forgets data that it could not sync, and no later sync makes them durable. */
function failSyncs(
  disk: Disk,
  fail: boolean,
  kind: keyof typeof syncedFiles = 'the log of the catalog',
): void {
  disk.state.set('failedSyncs', fail ? syncedFiles[kind] : 0);
}

async function expectAfterPowerCut(disk: Disk, ids: readonly string[]): Promise<void> {
  const left = await openCatalog({ directory: disk.cutPower() });
  for (const id of ids) expect(await left.getTenant(id), id).toBeDefined();
  await left.close();
}

describe.skipIf(noDisks !== undefined)('the catalog loses nothing to a power cut', () => {
  it('when syncs failed while it was opened', async () => {
    const disk = await Disk.make({ logged: true });
    const before = await open(disk);
    await create(before, 'first');
    await before.kill();
    failSyncs(disk, true);
    const opened = await open(disk).catch(() => undefined);
    failSyncs(disk, false);
    const after = opened ?? (await open(disk));
    await create(after, 'second');
    await expectAfterPowerCut(disk, ['first', 'second']);
    await after.kill();
  });

  it('when a sync failed and the process was killed', async () => {
    const disk = await Disk.make({ logged: true });
    const before = await open(disk);
    await create(before, 'first');
    failSyncs(disk, true);
    await expect(create(before, 'refused')).rejects.toThrow('not available');
    await before.kill();
    failSyncs(disk, false);
    const after = await open(disk);
    await create(after, 'second');
    await expectAfterPowerCut(disk, ['first', 'second']);
    await after.kill();
  });

  it('when the name of its log could not be synced', async () => {
    const disk = await Disk.make({ logged: true });
    const opened = await open(disk);
    failSyncs(disk, true, 'directories');
    await expect(create(opened, 'refused')).rejects.toThrow('could not open its file');
    failSyncs(disk, false, 'directories');
    await create(opened, 'second');
    await expectAfterPowerCut(disk, ['second']);
    await opened.kill();
    const after = await open(disk);
    await create(after, 'third');
    await expectAfterPowerCut(disk, ['second', 'third']);
    await after.kill();
  });

  it('when the names in its directory cannot be synced: it is not opened', async () => {
    const disk = await Disk.make({ logged: true });
    await (await open(disk)).kill();
    failSyncs(disk, true, 'directories');
    await expect(open(disk)).rejects.toThrow('not available now (SQLITE_IOERR_DIR_FSYNC)');
    failSyncs(disk, false, 'directories');
    await (await open(disk)).kill();
  });
});
