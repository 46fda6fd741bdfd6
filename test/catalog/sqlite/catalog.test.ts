import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { describeCatalog } from '../conformance.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

describeCatalog('SQLite', async () => {
  const directory = await newDirectory();
  let catalog = await openCatalog({ directory, actor: 'conformance' });
  return {
    get catalog() {
      return catalog;
    },
    async reopen() {
      await catalog.close();
      catalog = await openCatalog({ directory, actor: 'conformance' });
    },
    async dispose() {
      await catalog.close();
    },
  };
});
