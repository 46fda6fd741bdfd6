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
import { metadataTerms } from '../../../src/index/terms/metadata-terms.ts';
import { clusterSegments } from '../../../src/service/indexes/cluster-segments.ts';
import { newDirectory } from '../machine/temporary-directory.ts';
import { newIndex, newTenant } from '../stages/catalog-fixture.ts';
import {
  appendDocuments,
  assertRanges,
  conditionIn,
  deletionOf,
  dim,
  exactSearch,
  month,
  type TestDocument,
} from '../stages/index-stage.ts';
import { newDatabase } from './servers.ts';

export interface Node {
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
  /** Closes the index and opens it again. */
  reopen(): Promise<void>;
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
  readonly settings?: Partial<IndexSettings>;
  readonly exactTokenVectorsMax?: number;
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
      const node = await openNode({ tenantId, indexId, blobs, real }, options);
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
  const storage = createClusterStore({
    engine,
    cache,
    objects,
    catalogOf: (index) => clusterSegments(catalog, index, id),
    exactTokenVectorsMax: options.exactTokenVectorsMax ?? 0,
    settings: { ...defaultIndexSettings, ...options.settings },
    onBackgroundError: (_indexId, _job, error) => void errors.push(error),
  });
  let index = await storage.open(indexId, { shape: { dim, rowBits: 8 } });
  const usage = { tenantId, month, requests: 1 };
  let closed = false;

  return {
    id,
    catalog,
    cache,
    folder: path.dirname(await cache.create(`${indexId}/any`)),
    objects,
    errors,
    storage,
    index: () => index,
    upsert: (documents, written) =>
      index.write(async (writer) => {
        const versions = await appendDocuments(catalog, writer, documents);
        await written?.();
        const committed = await writer.commit(({ locations, segments }) => ({
          tenantId,
          indexId,
          documents: versions.map((version, place) => ({ ...version, ...locations[place]! })),
          documentsMax: 1_000_000,
          usage,
          segments,
        }));
        if (committed.outcome !== 'committed') throw new Error(committed.outcome);
        return committed.generation;
      }),
    remove: (docId) =>
      index.commitDelete(async () =>
        deletionOf(await catalog.commitDelete({ tenantId, indexId, docId, usage })),
      ),
    async update(docId, metadata, read) {
      const live = await catalog.findDocument(indexId, docId);
      const record = live && (await index.readRecord(live, 20_000));
      if (live === undefined || record === undefined) return false;
      await read?.();
      const [versionId] = (await catalog.allocateIds(1)) as [number];
      const text = JSON.stringify(metadata);
      const { outcome } = await index.write(async (writer) => {
        await writer.append({ ...record, versionId, terms: metadataTerms(text) });
        return await writer.commit(({ locations, segments }) => ({
          tenantId,
          indexId,
          documents: [{ ...live, ...locations[0]!, versionId, metadata: text, replaces: live.versionId }],
          documentsMax: 1_000_000,
          usage,
          segments,
        }));
      });
      return outcome === 'committed';
    },
    found: (filter = {}, where = '{}') =>
      index.read(async (reader) => {
        const results = await reader.search({ ...exactSearch(filter), ...conditionIn(where) });
        const versions = await catalog.resolveVersions(indexId, [...new Set(results.versionIds)]);
        assertRanges(results, versions);
        return [...results.versionIds]
          .map((versionId) => {
            const version = versions.get(versionId);
            if (version === undefined) throw new Error(`version ${versionId} cannot be resolved`);
            return `${version.docId} ${version.metadata}`;
          })
          .toSorted();
      }),
    statistics: () => index.read((reader) => reader.statistics(20_000)),
    async reopen() {
      index.close();
      await index.settled();
      index = await storage.open(indexId, { shape: { dim, rowBits: 8 } });
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
