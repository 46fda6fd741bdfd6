/**
 * Opens the indexes of the data directory for commands that read their files. A server may run beside them, except for
 * commands that take the lock of the directory.
 */
import path from 'node:path';
import type { Catalog, IndexRow } from '../../catalog/contract.ts';
import type { IndexState } from '../../contracts/index-state.ts';
import { lockDataDirectory } from '../../catalog/data-directory.ts';
import type { Config } from '../../app/config.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import { openLocalBlobStore } from '../../index/storage/local-blob-store.ts';
import { createEngine, type NativeEngine } from '../../index/engine/native.ts';
import { assertDataDirectory, withCatalog } from '../catalog/catalog-access.ts';
import { chosenIndexes, type IndexChoice } from '../catalog/names.ts';

export interface IndexAccess {
  readonly catalog: Catalog;
  readonly engine: NativeEngine;
  readonly blobs: BlobStore;
  /** The chosen indexes. */
  readonly rows: readonly IndexRow[];
  /** Token vectors that a search may scan exactly; 0 = measured. */
  readonly exactTokenVectorsMax: number;
}

export function withIndexes<T>(
  config: Config,
  choice: IndexChoice,
  work: (access: IndexAccess) => Promise<T>,
): Promise<T> {
  assertDataDirectory(config, 'this command');
  return withCatalog(config, async ({ catalog }) => {
    const rows = await chosenIndexes(catalog, choice);
    const blobs = await openLocalBlobStore(path.join(config.MAXSIMD_DATA_DIR, 'segments'));
    const exactTokenVectorsMax = config.exactTokenVectorsMax;
    return withEngine(config, (engine) => work({ catalog, engine, blobs, rows, exactTokenVectorsMax }));
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

/** As `withIndexes`, while no server uses the data directory. */
export async function withIndexesAlone<T>(
  config: Config,
  choice: IndexChoice,
  work: (access: IndexAccess) => Promise<T>,
): Promise<T> {
  return withIndexes(config, choice, async (access) => {
    const lock = lockDataDirectory(config.MAXSIMD_DATA_DIR);
    try {
      return await work(access);
    } finally {
      lock.release();
    }
  });
}

/** The state of an index in the catalog; `undefined` if it was deleted meanwhile. */
export async function stateOf(
  catalog: Pick<Catalog, 'loadIndexState' | 'listIndexIds'>,
  indexId: string,
): Promise<IndexState | undefined> {
  try {
    return await catalog.loadIndexState(indexId);
  } catch (error) {
    if ((await catalog.listIndexIds()).includes(indexId)) throw error;
    return undefined;
  }
}

/** Whether a running server has merged the segment away since its name was read. */
export async function isGone(
  catalog: Pick<Catalog, 'loadIndexState' | 'listIndexIds'>,
  indexId: string,
  segmentId: number,
): Promise<boolean> {
  const state = await stateOf(catalog, indexId);
  return state === undefined || state.segments.every(({ id }) => id !== segmentId);
}
