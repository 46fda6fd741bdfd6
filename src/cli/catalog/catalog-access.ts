/**
 * Opens the catalog for commands that work on it directly: the catalog of the data directory, or the one that several nodes
 * share. Servers may run beside it.
 */
import { userInfo } from 'node:os';
import path from 'node:path';
import {
  isDataDirectoryLocked,
  lockDataDirectory,
  prepareDataDirectory,
} from '../../catalog/data-directory.ts';
import { inspectCatalogFiles } from '../../catalog/sqlite/catalog-files.ts';
import { openCatalog } from '../../catalog/sqlite/open-catalog.ts';
import type { Catalog } from '../../catalog/contract.ts';
import { isClustered, readPepper, type Config } from '../../app/config.ts';
import { removeBlobs } from '../../index/storage/blob-store.ts';
import { openLocalBlobStore } from '../../index/storage/local-blob-store.ts';
import { administration, type Administration } from '../../service/administration.ts';
import { CommandFailure } from '../failure.ts';

export interface CatalogAccess {
  readonly catalog: Catalog;
  readonly administration: Administration;
}

/** Nodes that share a catalog remove deleted files themselves. */
async function withClusterCatalog<T>(
  config: Config,
  work: (access: CatalogAccess) => Promise<T>,
): Promise<T> {
  const keyPepper = await readPepper(config.MAXSIMD_KEY_PEPPER_FILE);
  const { openPostgresCatalog } = await import('../../catalog/postgres/open-catalog.ts');
  const catalog = await openPostgresCatalog({
    url: config.MAXSIMD_CATALOG_URL,
    keyPepper,
    actor: commandLineActor(),
  });
  try {
    const purge = (): Promise<boolean> => Promise.resolve(false);
    return await work({ catalog, administration: administration({ catalog, keyPepper, purge }) });
  } finally {
    await catalog.close();
  }
}

/** Refuses a command that works on a data directory only. */
export function assertDataDirectory(config: Config, command: string): void {
  if (!isClustered(config)) return;
  throw new CommandFailure(
    'configuration_error',
    `${command} works on a data directory, not on a cluster: unset MAXSIMD_CATALOG_URL`,
  );
}

/** Opens the catalog for the time of `work`. `create` makes one in a new directory. */
export async function withCatalog<T>(
  config: Config,
  work: (access: CatalogAccess) => Promise<T>,
  { create = false }: { readonly create?: boolean } = {},
): Promise<T> {
  if (isClustered(config)) return withClusterCatalog(config, work);
  const directory = config.MAXSIMD_DATA_DIR;
  if (create) await prepareDataDirectory(directory);
  else await assertCatalog(directory);
  const catalog = await openCatalog({ directory, mustExist: !create, actor: commandLineActor() });
  /** Removes rows, and files unless a server has them open. */
  const purge = async (indexIds: readonly string[]): Promise<boolean> => {
    await catalog.purgeDeleted();
    if (isDataDirectoryLocked(directory)) return false;
    const lock = lockDataDirectory(directory);
    try {
      const blobs = await openLocalBlobStore(path.join(directory, 'segments'));
      for (const indexId of indexIds) await removeBlobs(blobs, `${indexId}/`);
      return true;
    } finally {
      lock.release();
    }
  };
  try {
    const keyPepper = catalog.keyPepper();
    return await work({ catalog, administration: administration({ catalog, keyPepper, purge }) });
  } finally {
    await catalog.close();
  }
}

/** Only `serve` and `tenant create` make a data directory. For other commands, a missing one means the wrong folder. */
export async function assertCatalog(directory: string): Promise<void> {
  const { isNew } = await inspectCatalogFiles(directory);
  if (!isNew) return;
  throw new CommandFailure(
    'not_found',
    `there is no catalog in ${path.resolve(directory)}: MAXSIMD_DATA_DIR says where the service keeps its data`,
  );
}

/** The user who runs the command, for the audit log. */
export function commandLineActor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    // In some containers, users have no name.
    return 'cli';
  }
}
