/** Catalogs and processes for tests in which several processes use one data directory. */
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { newDirectory } from '../machine/temporary-directory.ts';
import { newTenant } from './catalog-fixture.ts';

/** Makes a catalog with one tenant, and closes it. */
export async function newCatalog(): Promise<{ directory: string; tenantId: string }> {
  const directory = await newDirectory();
  const catalog = await openCatalog({ directory });
  const { id: tenantId } = await newTenant(catalog);
  await catalog.close();
  return { directory, tenantId };
}

/**
 * Command and arguments of a Node process whose files may not grow beyond `fileKibMax`. A write across the limit is cut there.
 * Writes beyond it fail with EFBIG.
 */
export function nodeWithFileLimit(
  fileKibMax: number | 'unlimited',
  args: readonly string[],
): readonly [command: string, args: readonly string[]] {
  return ['bash', ['-c', `ulimit -f ${fileKibMax}; exec "$0" "$@"`, process.execPath, ...args]];
}
