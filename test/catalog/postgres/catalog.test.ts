import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { startTestPostgres, type PostgresUnderTest } from '../../support/cluster/postgres-server.ts';
import { describeCatalog } from '../conformance.ts';

let postgres: PostgresUnderTest;
beforeAll(async () => {
  postgres = await startTestPostgres();
}, 180_000);
afterAll(() => postgres.server.stop());

describeCatalog('PostgreSQL', async () => {
  const url = await postgres.newDatabase();
  const keyPepper = randomBytes(32);
  let catalog = await openPostgresCatalog({ url, keyPepper });
  return {
    get catalog() {
      return catalog;
    },
    async reopen() {
      await catalog.close();
      catalog = await openPostgresCatalog({ url, keyPepper });
    },
    dispose: () => catalog.close(),
  };
});
