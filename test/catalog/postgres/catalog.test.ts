import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import type { RunningPostgres } from '../../../deploy/local/postgres.ts';
import { newDatabase, serversMs, startTestPostgres } from '../../support/cluster/servers.ts';
import { describeCatalog } from '../conformance.ts';

let postgres: RunningPostgres;
beforeAll(async () => {
  postgres = await startTestPostgres();
}, serversMs);
afterAll(() => postgres.stop());

describeCatalog('PostgreSQL', async () => {
  const url = await newDatabase(postgres);
  const keyPepper = randomBytes(32);
  let catalog = await openPostgresCatalog({ url, keyPepper, actor: 'conformance' });
  return {
    get catalog() {
      return catalog;
    },
    async reopen() {
      await catalog.close();
      catalog = await openPostgresCatalog({ url, keyPepper, actor: 'conformance' });
    },
    dispose: () => catalog.close(),
  };
});
