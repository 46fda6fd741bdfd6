/** Opens an index as a node does, in this process, with an engine and a cache of its own and no encoder. */
import { randomUUID } from 'node:crypto';
import type { SharedServices } from '../../../deploy/local/cluster.ts';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import { createClusterStore } from '../../../src/index/cluster/cluster-store.ts';
import type { OpenIndex } from '../../../src/index/contract.ts';
import { createEngine } from '../../../src/index/engine/native.ts';
import type { IndexSettings } from '../../../src/index/index-settings.ts';
import { openBlobCache } from '../../../src/index/storage/local-blob-cache.ts';
import { openS3ObjectStore } from '../../../src/index/storage/s3-object-store.ts';
import { sharedSegments } from '../../../src/service/indexes/catalog-segments.ts';

export interface NodeIndexOptions {
  readonly catalog: ClusterCatalog;
  readonly indexId: string;
  readonly dim: number;
  /** The folder of the node's cached segments. */
  readonly directory: string;
  /** Number of threads of the node's engine; 0 = one for each core. */
  readonly threads: number;
  readonly settings: IndexSettings;
}

/** Opens the index. A failure in the background ends the process. */
export async function openNodeIndex(
  { environment }: Pick<SharedServices, 'environment'>,
  { catalog, indexId, dim, directory, threads, settings }: NodeIndexOptions,
): Promise<OpenIndex & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const failed = (what: unknown): never => {
    throw new Error('a node failed', { cause: what });
  };
  const objects = openS3ObjectStore(environment['MAXSIMD_BLOBS_URL'] ?? '');
  opening.defer(() => objects.close());
  const cache = await openBlobCache({ directory, objects, bytesMax: 2 ** 40, onError: failed });
  const engine = createEngine({ threads, kernel: 'auto' });
  opening.defer(() => engine.close());
  const index = await createClusterStore({
    engine,
    cache,
    objects,
    catalogOf: (id) => sharedSegments(catalog, id, randomUUID()),
    exactTokenVectorsMax: 0,
    settings,
    onBackgroundError: (_index, _job, error) => failed(error),
  }).open(indexId, { shape: { dim, rowBits: 8 } });
  opening.defer(async () => {
    index.close();
    await index.settled();
  });
  const opened = opening.move();
  return Object.assign(index, { [Symbol.asyncDispose]: () => opened.disposeAsync() });
}
