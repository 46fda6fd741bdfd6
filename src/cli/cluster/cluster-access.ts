/** Opens the catalog and the object store that several nodes share, for commands that work on them directly. */
import path from 'node:path';
import { explained } from '../../away-reasons.ts';
import { isClustered, readPepper, type Config } from '../../app/config.ts';
import type { ClusterCatalog } from '../../catalog/cluster-contract.ts';
import { prepareDataDirectory } from '../../catalog/data-directory.ts';
import { openOperatorCatalog, type OperatorCatalog } from '../../catalog/postgres/operator-catalog.ts';
import { openPostgresCatalog, type PostgresCatalogOptions } from '../../catalog/postgres/open-catalog.ts';
import type { ObjectStore } from '../../index/storage/object-store.ts';
import { openS3ObjectStore } from '../../index/storage/s3-object-store.ts';
import { withWorkDirectory } from '../backup/work-directory.ts';
import { CommandFailure, type FailureCode } from '../failure.ts';

export interface ClusterAccess {
  readonly catalog: ClusterCatalog;
  /** Operations on the same catalog for operators only. */
  readonly operator: OperatorCatalog;
  readonly objects: ObjectStore;
  /** API keys are hashed with it. It comes from this process's settings. */
  readonly keyPepper: Uint8Array;
}

export async function withCluster<T>(
  config: Config,
  work: (access: ClusterAccess) => Promise<T>,
  options: Pick<PostgresCatalogOptions, 'takesAnyPepper'> = {},
): Promise<T> {
  if (!isClustered(config)) {
    throw new CommandFailure(
      'configuration_error',
      'this command is for what several nodes share: set MAXSIMD_CATALOG_URL, MAXSIMD_BLOBS_URL and MAXSIMD_LIMITER_URL',
    );
  }
  const keyPepper = await readPepper(config.MAXSIMD_KEY_PEPPER_FILE);
  await using opened = new AsyncDisposableStack();
  const catalog = opened.adopt(
    await openPostgresCatalog({ ...options, url: config.MAXSIMD_CATALOG_URL, keyPepper }),
    (each) => each.close(),
  );
  const operator = opened.adopt(openOperatorCatalog(config.MAXSIMD_CATALOG_URL), (each) => each.close());
  const objects = opened.adopt(openS3ObjectStore(config.MAXSIMD_BLOBS_URL), (each) => each.close());
  return await work({ catalog, operator, objects, keyPepper }).catch((error: unknown) => {
    throw explained(error);
  });
}

/** Calls `withWorkDirectory` with a directory inside the data directory, which in a cluster is only a node's cache. */
export async function withClusterWork<T>(
  { MAXSIMD_DATA_DIR: directory }: Pick<Config, 'MAXSIMD_DATA_DIR'>,
  name: string,
  code: FailureCode,
  work: (directory: string) => Promise<T>,
): Promise<T> {
  await prepareDataDirectory(directory);
  const own = path.resolve(directory, name);
  const message = `another command works in ${own}: give this one a MAXSIMD_DATA_DIR of its own`;
  return await withWorkDirectory(own, { code, message }, () => work(own));
}
