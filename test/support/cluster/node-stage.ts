/**
 * Nodes on one index, driven below the service, with the real catalog and object store. Each has an engine and a cache of its
 * own. Documents are the token matrices of `stages/index-stage.ts`.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { SharedServices } from '../shared-services.ts';
import { parseConfig, type Config } from '../../../src/app/config.ts';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import type { Migration } from '../../../src/catalog/postgres/schema.ts';
import { createClusterStore } from '../../../src/index/cluster/cluster-store.ts';
import type { IndexStatistics, IndexStore, OpenIndex } from '../../../src/index/contract.ts';
import { createEngine } from '../../../src/index/engine/native.ts';
import { defaultIndexSettings, type IndexSettings } from '../../../src/index/index-settings.ts';
import type { BlobCache } from '../../../src/index/storage/blob-cache.ts';
import { openBlobCache } from '../../../src/index/storage/local-blob-cache.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import { openS3ObjectStore } from '../../../src/index/storage/s3-object-store.ts';
import { sharedSegments } from '../../../src/service/indexes/catalog-segments.ts';
import { newDirectory } from '../machine/temporary-directory.ts';
import { newIndex, newTenant } from '../stages/catalog-fixture.ts';
import { faultsOf, faultyIndex, withFaults, type Faults } from '../stages/faults.ts';
import { dim, driveIndex, withIndexes, type IndexDriver, type TestDocument } from '../stages/index-stage.ts';
import { newDatabase } from './servers.ts';

export interface Node extends Faults {
  readonly driver: IndexDriver;
  readonly id: string;
  readonly catalog: ClusterCatalog;
  readonly cache: BlobCache;
  /** The folder of its cached segments. */
  readonly folder: string;
  readonly objects: ObjectStore;
  readonly errors: unknown[];
  readonly storage: IndexStore;
  index(): OpenIndex;
  /** Upserts documents and returns the generation. `written` is awaited after the records are written, before the commit. */
  upsert(documents: readonly TestDocument[], written?: () => Promise<void>): Promise<number>;
  remove(docId: string): Promise<boolean>;
  /** Replaces the metadata of a document. Returns whether it is there and has not changed meanwhile. */
  update(docId: string, metadata: TestDocument['metadata'], read?: () => Promise<void>): Promise<boolean>;
  /** Finds documents by an exact scan. Returns their ids with their metadata, in order. */
  found(filter?: Readonly<Record<string, unknown>>, where?: string): Promise<readonly string[]>;
  statistics(): Promise<IndexStatistics>;
  /** Closes the index and opens it again; `between` runs while it is closed. */
  reopen(between?: () => Promise<void>, settings?: Partial<IndexSettings>): Promise<void>;
  close(): Promise<void>;
}

export interface NodeStage {
  /** The URL of the catalog's database. */
  readonly url: string;
  /** The configuration with which the command line reaches the same catalog and object store. */
  readonly config: Config;
  /** The object store of the nodes. */
  readonly objects: ObjectStore;
  readonly tenantId: string;
  readonly indexId: string;
  readonly catalog: ClusterCatalog;
  newNode(options?: NodeOptions): Promise<Node>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface NodeOptions {
  /** Absent = the index of the stage. */
  readonly indexId?: string;
  readonly settings?: Partial<IndexSettings>;
  readonly exactTokenVectorsMax?: number;
  /** Whether nodes of an earlier release live; absent = no. */
  readonly earlierNodes?: () => boolean;
  /** The migrations that the node's program knows, if it is of another version. */
  readonly migrations?: readonly Migration[];
  /** An existing cache; absent = a new one. */
  readonly directory?: string;
  /** Wraps the object store of the node. */
  readonly objects?: (real: ObjectStore) => ObjectStore;
  readonly catalog?: (real: ClusterCatalog) => ClusterCatalog;
}

export async function openNodeStage(
  postgres: SharedServices['postgres'],
  weed: SharedServices['seaweed'],
): Promise<NodeStage> {
  Object.assign(process.env, weed.environment);
  const url = await newDatabase(postgres);
  const keyPepper = randomBytes(32);
  const catalog = await openPostgresCatalog({ url, keyPepper });
  const { id: tenantId } = await newTenant(catalog, { documents: 1_000_000 });
  const { id: indexId } = await newIndex(catalog, tenantId);
  const blobs = `s3://${weed.bucket}/${randomUUID()}`;
  const objects = openS3ObjectStore(blobs);
  const directory = await newDirectory();
  const pepperFile = path.join(directory, 'key-pepper');
  await writeFile(pepperFile, keyPepper, { mode: 0o600 });
  const config = parseConfig({
    MAXSIMD_DATA_DIR: path.join(directory, 'data'),
    MAXSIMD_CATALOG_URL: url,
    MAXSIMD_BLOBS_URL: blobs,
    MAXSIMD_LIMITER_URL: 'redis://127.0.0.1:1',
    MAXSIMD_KEY_PEPPER_FILE: pepperFile,
  });
  const nodes: Node[] = [];
  return {
    url,
    config,
    objects,
    tenantId,
    indexId,
    catalog,
    async newNode(options = {}) {
      const { migrations } = options;
      const real = await openPostgresCatalog({
        url,
        keyPepper,
        ...(migrations === undefined ? {} : { migrations }),
      });
      const node = await openNode({ tenantId, indexId: options.indexId ?? indexId, blobs, real }, options);
      nodes.push(node);
      return node;
    },
    async [Symbol.asyncDispose]() {
      for (const node of nodes) await node.close();
      await catalog.close();
      objects.close();
    },
  };
}

async function openNode(
  stage: {
    readonly tenantId: string;
    readonly indexId: string;
    readonly blobs: string;
    readonly real: ClusterCatalog;
  },
  options: NodeOptions,
): Promise<Node> {
  const { tenantId, indexId } = stage;
  const id = randomUUID();
  const errors: unknown[] = [];
  const catalog = options.catalog?.(stage.real) ?? stage.real;
  const store = openS3ObjectStore(stage.blobs);
  const objects = options.objects?.(store) ?? store;
  const directory = options.directory ?? path.join(await newDirectory(), 'cache');
  const cache = await openBlobCache({
    directory,
    objects,
    bytesMax: 1024 * 1024 * 1024,
    onError: (error) => void errors.push(error),
  });
  const engine = createEngine({ threads: 1, kernel: 'auto' });
  const faults = new Map<string, Error>();
  const storeWith = (changes: Partial<IndexSettings> = {}) =>
    createClusterStore({
      engine: withIndexes(engine, (created) => faultyIndex(engine.createIndex(created), faults)),
      cache,
      objects: withFaults(objects, faults),
      catalogOf: (ofIndex) => sharedSegments(withFaults(catalog, faults), ofIndex, id),
      exactTokenVectorsMax: options.exactTokenVectorsMax ?? 0,
      settings: { ...defaultIndexSettings, ...changes },
      earlierNodes: options.earlierNodes,
      onBackgroundError: (_indexId, _job, error) => void errors.push(error),
    });
  const storage = storeWith(options.settings);
  const open = (from: IndexStore) => from.open(indexId, { shape: { dim, rowBits: 8 } });
  let index = await open(storage);
  let closed = false;
  const driver = driveIndex({ catalog, tenantId, indexId, index: () => index });

  return {
    driver,
    ...faultsOf(faults),
    id,
    catalog,
    cache,
    folder: path.dirname(await cache.create(`${indexId}/any`)),
    objects,
    errors,
    storage,
    index: () => index,
    upsert: (documents, written) =>
      driver.upsert(documents, async (work) => {
        await written?.();
        await work();
      }),
    remove: (docId) => driver.remove(docId),
    update: async (...update) => (await driver.updateOnce(...update)) === 'updated',
    async found(filter, where) {
      const results = await driver.search(filter, undefined, where);
      return results.map(({ docId, metadata }) => `${docId} ${metadata}`).toSorted();
    },
    statistics: () => index.read((reader) => reader.statistics(20_000)),
    async reopen(between, changes = options.settings) {
      index.close();
      await index.settled();
      await between?.();
      index = await open(changes === options.settings ? storage : storeWith(changes));
    },
    async close() {
      if (closed) return;
      closed = true;
      index.close();
      await index.settled();
      engine.close();
      await stage.real.close();
      store.close();
    },
  };
}
