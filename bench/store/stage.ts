/** An index made for the store's benchmark: one chunk a document, random vectors, real catalog, real files. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { openCatalog } from '../../src/catalog/sqlite/open-catalog.ts';
import { defaultIndexSettings, type IndexSettings } from '../../src/index/index-settings.ts';
import { createIndexStore } from '../../src/index/index-store.ts';
import { openLocalBlobStore } from '../../src/index/storage/local-blob-store.ts';
import { metadataTerms } from '../../src/index/terms/metadata-terms.ts';
import { createEngine } from '../../src/index/engine/native.ts';
import type { StoredIndex } from '../../src/index/open-index.ts';
import { catalogSegments } from '../../src/service/indexes/catalog-segments.ts';
import { scratchFolder } from '../lib/endings.ts';
import { seededRandom } from '../lib/seeded-random.ts';

export interface StoreShape {
  readonly documents: number;
  readonly dim: number;
  /** Token vectors of each document's chunk. */
  readonly rows: number;
}

export interface StoreStage {
  /** The data directory. */
  readonly directory: string;
  readonly kernel: string;
  open(settings: Partial<IndexSettings>): Promise<StoredIndex>;
  close(index: StoredIndex): Promise<void>;
  fill(index: StoredIndex, onProgress: (documents: number) => void): Promise<void>;
  remove(index: StoredIndex, document: number): Promise<void>;
  /** Milliseconds and those of its exact scoring; `group` filters to one document in 128. */
  search(index: StoredIndex, group?: number): Promise<{ readonly ms: number; readonly exactMs: number }>;
  /** The page cache lets go of every file of the index that is not mapped. */
  dropCache(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const batch = 250;
const groups = 128;
const queryTokens = 32;
/** Half-precision bits of 1/128. */
const scaleBits = 0x2000;

export async function openStoreStage(shape: StoreShape): Promise<StoreStage> {
  const { documents, dim, rows } = shape;
  const folder = scratchFolder('bench-store');
  const directory = folder.path;
  const catalog = await openCatalog({ directory });
  const engine = createEngine({ threads: 0, kernel: 'auto' });
  const blobs = await openLocalBlobStore(path.join(directory, 'segments'));
  const [tenantId, indexId] = [randomUUID(), randomUUID()];
  const limits = {
    requestsPerMinute: 1,
    maxConcurrentRequests: 1,
    inputTokens: 1n,
    documents: documents * 2,
  };
  await catalog.createTenant({ id: tenantId, name: 'bench', limits });
  const chunking = { maxTokens: 256, overlapTokens: 32, minimumChunkTokens: 16 };
  const model = { model: 'bench', modelVersion: '1', metadataSchema: '{}' };
  await catalog.createIndex({ id: indexId, tenantId, name: 'bench', ...model, chunking }, 1);
  const usage = { tenantId, month: '2026-01' };
  const random = seededRandom(1);
  const bytes = (count: number) => Int8Array.from({ length: count }, () => Math.floor(random() * 255) - 127);
  const query = Float32Array.from({ length: queryTokens * dim }, () => random() - 0.5);
  const scales = new Uint16Array(rows).fill(scaleBits);
  const failed = (_index: string, what: unknown, error?: unknown): never => {
    throw new Error(`the store failed: ${String(what)}`, { cause: error });
  };

  return {
    directory,
    kernel: engine.info.kernel,
    open: (settings) =>
      createIndexStore({
        engine,
        blobs,
        exactTokenVectorsMax: 0,
        settings: { ...defaultIndexSettings, ...settings },
        events: { onBackgroundError: failed, onCorrupt: failed },
      }).open({ indexId, dim, catalog: catalogSegments(catalog, indexId) }),
    async close(index) {
      index.close();
      await index.settled();
    },
    async fill(index, onProgress) {
      for (let first = 0; first < documents; first += batch) {
        await index.write(async (writer) => {
          const ids = await catalog.allocateIds(Math.min(batch, documents - first));
          const versions = await Promise.all(
            ids.map(async (versionId, place) => {
              await writer.append({
                versionId,
                chunkRows: Uint32Array.of(rows),
                vectors: bytes(rows * dim),
                scales,
                terms: metadataTerms(`{"group":${(first + place) % groups}}`),
              });
              const counts = { chunkCount: 1, tokenVectors: rows };
              return { docId: `d${first + place}`, versionId, metadata: '{"group":1}', ...counts };
            }),
          );
          const { outcome } = await writer.commit(({ locations }) => ({
            tenantId,
            indexId,
            documents: versions.map((version, place) => ({ ...version, ...locations[place]! })),
            documentsMax: documents * 2,
            usage,
          }));
          if (outcome !== 'committed') throw new Error(outcome);
        });
        onProgress(first + batch);
      }
    },
    remove: (index, document) =>
      index.commitDelete(async () => {
        const deleted = await catalog.commitDelete({ tenantId, indexId, docId: `d${document}`, usage });
        if (deleted.outcome !== 'committed') throw new Error(deleted.outcome);
        return { result: undefined, commit: { generation: deleted.generation, died: [deleted.died] } };
      }),
    async search(index, group) {
      const start = performance.now();
      const { timings } = await index.read((reader) =>
        reader.search({
          query,
          offsets: new Float32Array(queryTokens),
          topK: 10,
          candidateK: 200,
          ...(group === undefined ? {} : { filterTerms: metadataTerms(`{"group":${group % groups}}`) }),
          components: false,
          timeoutMs: 60_000,
        }),
      );
      return { ms: performance.now() - start, exactMs: timings.exactMs };
    },
    async dropCache() {
      for (const { name } of await blobs.list(`${indexId}/`)) {
        execFileSync('dd', [`if=${await blobs.open(name)}`, 'iflag=nocache', 'count=0', 'status=none']);
      }
    },
    async [Symbol.asyncDispose]() {
      await catalog.close();
      engine.close();
      folder[Symbol.dispose]();
    },
  };
}
