/** The catalog's role needs no rights beyond a database of its own. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { newSharedDatabase, queryDatabase } from '../../support/cluster/servers.ts';
import { newIndex, newTenant } from '../../support/stages/catalog-fixture.ts';

it('works as a plain owner of its database', async () => {
  const own = await newSharedDatabase();
  const role = `role_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(own);
  await queryDatabase(own, `CREATE ROLE ${role} LOGIN PASSWORD 'plain'`);
  await queryDatabase(own, `ALTER DATABASE ${url.pathname.slice(1)} OWNER TO ${role}`);
  [url.username, url.password] = [role, 'plain'];
  const catalog = await openPostgresCatalog({ url: url.href, keyPepper: new Uint8Array(32) });
  const { id } = await newIndex(catalog, (await newTenant(catalog)).id);
  const { epoch } = (await catalog.readHead(id))!;
  expect(epoch).toMatch(/^[0-9a-f-]{36}$/);
  // System identifier, timeline, start of the server, database, file of the table.
  const [row] = await queryDatabase(own, 'SELECT server FROM catalog');
  expect(row?.['server']).toMatch(/^\d+ [0-9A-F]{8} [\d.]+ \d+ \d+$/);
  await catalog.close();
});
