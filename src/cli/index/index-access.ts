/**
 * Opens indexes for commands that read their files: those of the data directory, or those that several nodes share. A
 * server may run beside the command, except for one that takes the lock of the directory.
 */
import path from 'node:path';
import type { Catalog, IndexRow } from '../../catalog/contract.ts';
import { lockDataDirectory } from '../../catalog/data-directory.ts';
import { isClustered, type Config } from '../../app/config.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import { openLocalBlobStore } from '../../index/storage/local-blob-store.ts';
import { createEngine, type NativeEngine } from '../../index/engine/native.ts';
import { assertDataDirectory, withCatalog } from '../catalog/catalog-access.ts';
import { chosenIndexes, type IndexChoice } from '../catalog/names.ts';
import { directoryIndexes } from './directory-indexes.ts';
import type { StoredIndexes } from './stored-indexes.ts';

export interface IndexAccess {
  readonly catalog: Catalog;
  readonly stored: StoredIndexes;
  readonly engine: NativeEngine;
  /** The chosen indexes. */
  readonly rows: readonly IndexRow[];
  /** Token vectors that a search may scan exactly; 0 = measured. */
  readonly exactTokenVectorsMax: number;
}

export interface DirectoryAccess extends IndexAccess {
  readonly blobs: BlobStore;
}

export function withIndexes<T>(
  config: Config,
  { purpose = 'inspecting', ...choice }: IndexChoice & { readonly purpose?: 'inspecting' | 'verifying' },
  work: (access: IndexAccess) => Promise<T>,
): Promise<T> {
  const { exactTokenVectorsMax } = config;
  return withEngine(config, async (engine) => {
    const given = async (catalog: Catalog, stored: StoredIndexes): Promise<T> => {
      const rows = await chosenIndexes(catalog, choice);
      return await work({ catalog, stored, engine, rows, exactTokenVectorsMax });
    };
    if (isClustered(config)) {
      const { withSharedIndexes } = await import('../cluster/shared-indexes.ts');
      return await withSharedIndexes(config, purpose, given);
    }
    return await withCatalog(config, async ({ catalog }) =>
      given(catalog, directoryIndexes(catalog, await openLocalBlobStore(segmentsOf(config)))),
    );
  });
}

/** As `withIndexes`, while no server uses the data directory. */
export function withIndexesAlone<T>(
  config: Config,
  choice: IndexChoice,
  work: (access: DirectoryAccess) => Promise<T>,
): Promise<T> {
  assertDataDirectory(config, 'this command');
  return withIndexes(config, choice, async (access) => {
    const lock = lockDataDirectory(config.MAXSIMD_DATA_DIR);
    try {
      return await work({ ...access, blobs: await openLocalBlobStore(segmentsOf(config)) });
    } finally {
      lock.release();
    }
  });
}

/** Opens an engine for the time of `work`. */
export async function withEngine<T>(
  config: Pick<Config, 'MAXSIMD_ENGINE_THREADS'>,
  work: (engine: NativeEngine) => Promise<T>,
): Promise<T> {
  const engine = createEngine({ threads: config.MAXSIMD_ENGINE_THREADS, kernel: 'auto' });
  try {
    return await work(engine);
  } finally {
    engine.close();
  }
}

function segmentsOf({ MAXSIMD_DATA_DIR: directory }: Config): string {
  return path.join(directory, 'segments');
}
