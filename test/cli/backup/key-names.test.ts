/** Names and last uses of keys, and match fields of indexes, move with an archive: between data directories, into a cluster and back. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { parseConfig } from '../../../src/app/config.ts';
import type { Catalog } from '../../../src/catalog/contract.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { newDatabase, serversMs } from '../../support/cluster/servers.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { indexInput } from '../../support/stages/catalog-fixture.ts';
import { openServiceStage } from '../../support/stages/service-stage.ts';
import { backUp, restoreTo } from './commands.ts';

const servers = useStageServers();
beforeAll(() => void Object.assign(process.env, servers.weed.environment), serversMs);

async function keptOf(catalog: Catalog, tenantId: string) {
  const kept = { keys: await catalog.listKeys(tenantId), indexes: await catalog.listIndexes(tenantId) };
  await catalog.close();
  return kept;
}

it('are the same everywhere', async () => {
  const place = await newDirectory();
  const under = (name: string): string => path.join(place, name);
  await using stage = await openServiceStage();
  const { tenant } = await stage.newTenant();
  const named = { id: 'named', tenantId: tenant.id, hash: new Uint8Array(32), name: 'Größe 👩‍🚀 "1"' };
  await stage.catalog.createKey(named);
  await stage.catalog.noteKeyUse(named.id, 12_345_678);
  const matchFields = ['part.number', 'Größe 👩‍🚀 "1"'];
  await stage.catalog.createIndex({ ...indexInput(tenant.id, 'parts'), matchFields }, 10);
  const keys = await stage.catalog.listKeys(tenant.id);
  const indexes = await stage.catalog.listIndexes(tenant.id);
  const before = { keys, indexes };
  expect(indexes).toMatchObject([{ name: 'parts', matchFields }]);
  expect(keys.map(({ name, lastUsedAtMs }) => [name, lastUsedAtMs])).toEqual([
    [undefined, undefined],
    [named.name, 12_345_678],
  ]);
  await backUp(stage.directory, under('first.tar'));
  await restoreTo(under('restored'), under('first.tar'));
  expect(await keptOf(await openCatalog({ directory: under('restored') }), tenant.id)).toEqual(before);

  const config = parseConfig({
    MAXSIMD_DATA_DIR: under('cache'),
    MAXSIMD_CATALOG_URL: await newDatabase(servers.postgres),
    MAXSIMD_BLOBS_URL: `s3://${servers.weed.bucket}/${randomUUID()}`,
    MAXSIMD_LIMITER_URL: 'redis://127.0.0.1:1',
    MAXSIMD_KEY_PEPPER_FILE: path.join(stage.directory, 'key-pepper'),
  });
  await restoreTo(under('cache'), under('first.tar'), { config });
  const keyPepper = await readFile(config.MAXSIMD_KEY_PEPPER_FILE);
  const shared = await openPostgresCatalog({ url: config.MAXSIMD_CATALOG_URL, keyPepper });
  expect(await keptOf(shared, tenant.id)).toEqual(before);
  await backUp(under('cache'), under('second.tar'), { config });
  await restoreTo(under('back'), under('second.tar'));
  expect(await keptOf(await openCatalog({ directory: under('back') }), tenant.id)).toEqual(before);
});
