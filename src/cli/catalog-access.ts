/** The catalog of the data directory, for commands that work on it directly, beside a running server or without one. */
import { generateApiKey, hashApiKey } from '../catalog/api-key.ts';
import { prepareDataDirectory } from '../catalog/data-directory.ts';
import { loadKeyPepper } from '../catalog/key-pepper.ts';
import { openCatalog, type SqliteCatalog } from '../catalog/sqlite/open-catalog.ts';
import type { Config } from '../config.ts';
import type { NewApiKey } from './keys.ts';

export interface CatalogAccess {
  readonly catalog: SqliteCatalog;
  readonly newApiKey: () => NewApiKey;
}

/** Opens the catalog (made if it is missing) for the time of `work`. */
export async function withCatalog<T>(
  config: Config,
  work: (access: CatalogAccess) => Promise<T>,
): Promise<T> {
  const directory = config.MAXSIMD_DATA_DIR;
  await prepareDataDirectory(directory);
  const pepper = await loadKeyPepper(directory);
  const catalog = await openCatalog({ directory });
  const newApiKey = (): NewApiKey => {
    const { id, apiKey } = generateApiKey();
    return { id, apiKey, hash: hashApiKey(apiKey, pepper) };
  };
  try {
    return await work({ catalog, newApiKey });
  } finally {
    await catalog.close();
  }
}
