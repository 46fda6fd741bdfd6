import { randomBytes } from 'node:crypto';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { newSharedDatabase } from '../../support/cluster/servers.ts';
import { describeCatalog } from '../conformance.ts';

describeCatalog('PostgreSQL', async () => {
  const url = await newSharedDatabase();
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
