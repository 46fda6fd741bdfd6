/** Catalogs and processes for the tests of what several processes do to one data directory. */
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { newDirectory } from '../machine/temporary-directory.ts';
import { newTenant } from './catalog-fixture.ts';

/** A catalog with one tenant, closed. */
export async function newCatalog(): Promise<{ directory: string; tenantId: string }> {
  const directory = await newDirectory();
  const catalog = await openCatalog({ directory });
  const { id: tenantId } = await newTenant(catalog);
  await catalog.close();
  return { directory, tenantId };
}

/**
 * Command and arguments of a Node process that may write no file beyond `fileKibMax`: a write across the limit is cut
 * there, those behind it fail with EFBIG.
 */
export function nodeWithFileLimit(
  fileKibMax: number | 'unlimited',
  args: readonly string[],
): readonly [command: string, args: readonly string[]] {
  return ['bash', ['-c', `ulimit -f ${fileKibMax}; exec "$0" "$@"`, process.execPath, ...args]];
}
