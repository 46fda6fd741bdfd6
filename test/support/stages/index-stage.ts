/**
 * One index with the real catalog, engine and directory, used without the service. Documents are token matrices that are made
 * here. They have 8 dimensions, and a chunk has one row or a few.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Catalog, CommitDeleteResult } from '../../../src/catalog/contract.ts';
import type { CommitUpsertInput, NewVersion } from '../../../src/contracts/document-commits.ts';
import type { RecordLocation } from '../../../src/contracts/index-state.ts';
import type { CommitWork, IndexWriter, OpenIndex, PlacedRecords } from '../../../src/index/contract.ts';
import { prepareDataDirectory } from '../../../src/catalog/data-directory.ts';
import type { SqliteCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import type { BlobStore } from '../../../src/index/storage/blob-store.ts';
import { defaultIndexSettings, type IndexSettings } from '../../../src/index/index-settings.ts';
import { createLocalStore } from '../../../src/index/local-store.ts';
import { openLocalBlobStore } from '../../../src/index/storage/local-blob-store.ts';
import { segmentOfColumn } from '../../../src/index/segments/derived-data.ts';
import { conditionOf } from '../../../src/index/terms/condition.ts';
import { metadataTerms } from '../../../src/index/terms/metadata-terms.ts';
import {
  createEngine,
  type NativeEngine,
  type NativeSearchResult,
} from '../../../src/index/engine/native.ts';
import type { Repeats } from '../../../src/index/ask-again.ts';
import type { Verification } from '../../../src/index/segments/scrub.ts';
import type { LocalIndex } from '../../../src/index/local-index.ts';
import { ownSegments } from '../../../src/service/indexes/catalog-segments.ts';
import { faultsOf, faultyIndex, withFaults, type Faults } from './faults.ts';
import { hangMs } from '../running/eventually.ts';

export const dim = 8;
export const month = '2026-11';
/** Half-precision bits of 1/128. */
const scaleBits = 0x2000;
const scale = 1 / 128;

export interface TestDocument {
  readonly docId: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The metadata as text, if `JSON.stringify` would write it differently. */
  readonly metadataText?: string;
  /** The rows of each chunk. Their values are -127 to 127. */
  readonly chunks: readonly (readonly (readonly number[])[])[];
}

export interface Found {
  readonly docId: string;
  readonly chunkIndex: number;
  readonly metadata: string;
  readonly score: number;
}

/** The catalog, files and engine. All indexes of a test file share them, because they start slowly. */
export interface Host {
  readonly catalog: SqliteCatalog;
  readonly blobs: BlobStore;
  readonly engine: NativeEngine;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One open index, and the requests of the service that it answers. */
export interface IndexDriver {
  readonly tenantId: string;
  readonly indexId: string;
  /** Returns the generation. `commit` runs around the commit. */
  upsert(
    documents: readonly TestDocument[],
    commit?: (work: () => Promise<void>) => Promise<void>,
  ): Promise<number>;
  /** Commits a delete in the catalog and does not publish it. */
  commitDelete(docId: string): Promise<CommitDeleteResult>;
  /** Writes the records of documents and does not commit them. */
  abandon(documents: readonly TestDocument[]): Promise<void>;
  remove(docId: string): Promise<boolean>;
  /** Replaces the metadata of a document. `read` is awaited between the record and the commit. */
  updateOnce(
    docId: string,
    metadata: TestDocument['metadata'],
    read?: () => Promise<void>,
  ): Promise<'updated' | 'changed' | 'missing'>;
  /** Replaces the metadata of a document, and tries again if another commit came between. Returns whether the document exists. */
  update(docId: string, metadata: TestDocument['metadata']): Promise<boolean>;
  /** Finds all matching documents, or the best `topK`, by an exact scan. The best is first. */
  search(
    filter?: Readonly<Record<string, unknown>>,
    topK?: number,
    where?: string,
  ): Promise<readonly Found[]>;
}

export interface Stage extends Omit<Host, typeof Symbol.asyncDispose>, IndexDriver, Faults {
  readonly errors: unknown[];
  readonly corrupt: unknown[];
  /** Counters of the store that last opened the index. */
  readonly verification: Readonly<Verification>;
  readonly repeats: Readonly<Repeats>;
  /** The open index. */
  index(): LocalIndex;
  /** Ids of the documents that meet `where`, in order. */
  matching(where: string): Promise<readonly string[]>;
  /** Closes the index and opens it again from the catalog; `between` runs while it is closed. */
  reopen(between?: () => Promise<void>, settings?: Partial<IndexSettings>): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const query = Float32Array.from({ length: 2 * dim }, (_value, place) => Math.sin(place + 1));

/** Opens a host. `kept` is a data directory that this process owns and that stays; absent = a new one. */
export async function openHost(kept?: string): Promise<Host> {
  const directory = kept ?? (await mkdtemp(path.join(tmpdir(), 'maxsimd-index-')));
  await prepareDataDirectory(directory);
  const catalog = await openCatalog({ directory, owned: kept !== undefined });
  const blobs = await openLocalBlobStore(path.join(directory, 'segments')).catch(async (error: unknown) => {
    await catalog.close();
    throw error;
  });
  const engine = createEngine({ threads: 2, kernel: 'auto' });
  return {
    catalog,
    engine,
    blobs,
    async [Symbol.asyncDispose]() {
      await catalog.close();
      engine.close();
      if (kept === undefined) await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Opens a stage on an index of the catalog, or on a new index of a new tenant. */
export async function openStage(
  host: Omit<Host, typeof Symbol.asyncDispose>,
  settings: Partial<IndexSettings> = {},
  known?: Pick<Stage, 'tenantId' | 'indexId'>,
): Promise<Stage> {
  const { catalog, blobs, engine } = host;
  const errors: unknown[] = [];
  const corrupt: unknown[] = [];
  const faults = new Map<string, Error>();
  const storeWith = (changes: Partial<IndexSettings>) =>
    createLocalStore({
      engine: withIndexes(engine, (options) => faultyIndex(engine.createIndex(options), faults)),
      blobs,
      exactTokenVectorsMax: 0,
      settings: { ...defaultIndexSettings, ...changes },
      catalogOf: (id) => ownSegments(withFaults(catalog, faults), id),
      events: {
        onBackgroundError: (_indexId, _job, error) => void errors.push(error),
        onCorrupt: (_indexId, error) => void corrupt.push(error),
      },
    });
  const { tenantId, indexId } = known ?? (await newIndexOf(catalog));
  let store = storeWith(settings);
  const open = () => store.open(indexId, { shape: { dim, rowBits: 8 } });
  let index = await open();

  return {
    ...driveIndex({ catalog, tenantId, indexId, index: () => index }),
    ...faultsOf(faults),
    catalog,
    blobs,
    engine,
    errors,
    corrupt,
    get verification() {
      return store.verification;
    },
    get repeats() {
      return store.repeats;
    },
    index: () => index,
    matching: (where) =>
      index.read(async (reader) => {
        const versionIds = await reader.matching({ ...conditionIn(where), timeoutMs: hangMs });
        const versions = await catalog.resolveVersions(indexId, [...versionIds]);
        return Array.from(versionIds, (versionId) => versions.get(versionId)?.docId ?? '').toSorted();
      }),
    async reopen(between, changes) {
      index.close();
      await index.settled();
      await between?.();
      if (changes !== undefined) store = storeWith(changes);
      index = await open();
    },
    async [Symbol.asyncDispose]() {
      index.close();
      await index.settled();
    },
  };
}

/** Sends requests to an open index, as the service does. */
export function driveIndex({
  catalog,
  tenantId,
  indexId,
  index,
}: {
  readonly catalog: Catalog;
  readonly tenantId: string;
  readonly indexId: string;
  readonly index: () => OpenIndex;
}): IndexDriver {
  const usage = { tenantId, month, requests: 1 };
  const upsertOf = (documents: readonly NewVersion[], { segments }: PlacedRecords): CommitUpsertInput => ({
    tenantId,
    indexId,
    documents,
    documentsMax: 1_000_000,
    usage: {
      ...usage,
      documentUpserts: documents.length,
      inputTokens: BigInt(documents.reduce((sum, { tokenVectors }) => sum + tokenVectors, 0)),
    },
    segments,
  });
  const commitDelete = (docId: string) => catalog.commitDelete({ tenantId, indexId, docId, usage });
  const updateOnce: IndexDriver['updateOnce'] = async (docId, metadata, read) => {
    const live = await catalog.findDocument(indexId, docId);
    if (live === undefined) return 'missing';
    const record = await index().readRecord(live, 20_000);
    if (record === undefined) return 'changed';
    await read?.();
    const [versionId] = (await catalog.allocateIds(1)) as [number];
    const text = JSON.stringify(metadata);
    const { outcome } = await index().write(async (writer) => {
      await writer.append({ ...record, versionId, terms: metadataTerms(text) });
      return await writer.commit((placed) =>
        upsertOf(
          [{ ...live, ...placed.locations[0]!, versionId, metadata: text, replaces: live.versionId }],
          placed,
        ),
      );
    });
    return outcome === 'committed' ? 'updated' : 'changed';
  };

  return {
    tenantId,
    indexId,
    upsert: (documents, commit = (work) => work()) =>
      index().write(async (writer) => {
        const versions = await appendDocuments(catalog, writer, documents);
        let generation = -1;
        await commit(async () => {
          const result = await writer.commit((placed) =>
            upsertOf(
              versions.map((version, place) => ({ ...version, ...placed.locations[place]! })),
              placed,
            ),
          );
          if (result.outcome !== 'committed') throw new Error(result.outcome);
          generation = result.generation;
        });
        return generation;
      }),
    commitDelete,
    abandon: (documents) =>
      index().write(async (writer) => void (await appendDocuments(catalog, writer, documents))),
    remove: (docId) => index().commitDelete(async () => deletionOf(await commitDelete(docId))),
    updateOnce,
    async update(docId, metadata) {
      for (;;) {
        const outcome = await updateOnce(docId, metadata);
        if (outcome !== 'changed') return outcome === 'updated';
      }
    },
    search: (filter = {}, topK = 10_000, where = '{}') =>
      index().read(async (reader) => {
        const found = await reader.search({ ...exactSearch(filter), topK, ...conditionIn(where) });
        const versions = await catalog.resolveVersions(indexId, [...new Set(found.versionIds)]);
        assertRanges(found, versions);
        return [...found.versionIds].map((versionId, position) => {
          const version = versions.get(versionId);
          if (version === undefined) throw new Error(`version ${versionId} cannot be resolved`);
          const { docId, metadata } = version;
          return {
            docId,
            metadata,
            chunkIndex: found.chunkIndexes[position]!,
            score: found.scores[position]!,
          };
        });
      }),
  };
}

/** Appends documents in order. Returns their versions, which still lack their places. */
export async function appendDocuments(
  catalog: Pick<Catalog, 'allocateIds'>,
  writer: IndexWriter,
  documents: readonly TestDocument[],
): Promise<readonly Omit<NewVersion, keyof RecordLocation>[]> {
  const ids = await catalog.allocateIds(documents.length);
  const versions = [];
  for (const [place, { docId, chunks, ...document }] of documents.entries()) {
    const rows = chunks.flat();
    const metadata = document.metadataText ?? JSON.stringify(document.metadata);
    const versionId = ids[place]!;
    await writer.append({
      versionId,
      chunkRows: Uint32Array.from(chunks, (chunk) => chunk.length),
      vectors: Int8Array.from(rows.flat()),
      scales: new Uint16Array(rows.length).fill(scaleBits),
      terms: metadataTerms(metadata),
      chunkRanges: Uint32Array.from(
        chunks.flatMap((chunk, index) => [...rangeOf(docId, index), chunk.length]),
      ),
      rowPlaces: new Uint8Array(rows.length),
    });
    versions.push({ docId, versionId, metadata, chunkCount: chunks.length, tokenVectors: rows.length });
  }
  return versions;
}

/** The range of a chunk in its text. There is no text here, so the range only tells chunks apart. */
function rangeOf(docId: string, chunkIndex: number): readonly [start: number, end: number] {
  return [docId.length, docId.length + chunkIndex + 1];
}

/** Checks that every result has the range that was appended with it, wherever its record lies now. */
export function assertRanges(
  { versionIds, chunkIndexes, chunkRanges }: NativeSearchResult,
  versions: ReadonlyMap<number, { readonly docId: string }>,
): void {
  const appended = [...versionIds].flatMap((versionId, position) =>
    rangeOf(versions.get(versionId)?.docId ?? '', chunkIndexes[position]!),
  );
  assert.deepEqual([...chunkRanges], appended);
}

/** A transaction that deletes a document, in the form that an open index publishes. */
export function deletionOf(deleted: CommitDeleteResult): CommitWork<boolean> {
  return deleted.outcome === 'committed'
    ? { result: true, commit: { generation: deleted.generation, died: [deleted.died] } }
    : { result: false };
}

/** A search that scores every chunk that passes the filter. */
export function exactSearch(filter: Readonly<Record<string, unknown>>) {
  return {
    query,
    offsets: new Float32Array(2),
    topK: 10_000,
    candidateK: 10_000,
    ...(Object.keys(filter).length === 0 ? {} : { filterTerms: metadataTerms(JSON.stringify(filter)) }),
    components: false,
    timeoutMs: hangMs,
    plan: 'exact',
  } as const;
}

export function conditionIn(where: string): { readonly where?: Uint8Array } {
  const condition = conditionOf(where, 'where');
  return condition === undefined ? {} : { where: condition };
}

/** Makes an index of a new tenant. */
async function newIndexOf(catalog: SqliteCatalog): Promise<Pick<Stage, 'tenantId' | 'indexId'>> {
  const tenant = await catalog.createTenant({
    id: randomUUID(),
    name: `tenant ${randomUUID()}`,
    limits: { requestsPerMinute: 1, maxConcurrentRequests: 1, inputTokens: 1n, documents: 1_000_000 },
  });
  const indexId = randomUUID();
  await catalog.createIndex(
    {
      id: indexId,
      tenantId: tenant.id,
      name: 'index',
      model: 'model',
      modelVersion: '1',
      chunking: { maxTokens: 256, overlapTokens: 32, minimumChunkTokens: 16 },
      metadataSchema: '{}',
      matchFields: [],
    },
    10,
  );
  return { tenantId: tenant.id, indexId };
}

/** The engine with `createIndex` replaced. */
export function withIndexes(engine: NativeEngine, createIndex: NativeEngine['createIndex']): NativeEngine {
  return new Proxy(engine, {
    get(target, name) {
      if (name === 'createIndex') return createIndex;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/** The only file of this kind beside a segment. */
export async function derivedFile(stage: Stage, kind: string): Promise<string> {
  const blobs = await stage.blobs.list(`${stage.indexId}/`);
  const [derived, ...others] = blobs.filter(({ name }) => name.endsWith(`.${kind}`));
  if (derived === undefined || others.length > 0)
    throw new Error(`${blobs.length} files, not one of ${kind}`);
  return stage.blobs.open(derived.name);
}

/** Names of the files of columns of the index. */
export async function columnsOf(stage: Pick<Stage, 'blobs' | 'indexId'>): Promise<readonly string[]> {
  const blobs = await stage.blobs.list(`${stage.indexId}/`);
  return blobs.map(({ name }) => name).filter((name) => segmentOfColumn(name) !== undefined);
}

/** MaxSim of one chunk in double precision. */
function maxsim(chunk: readonly (readonly number[])[]): number {
  let sum = 0;
  for (let token = 0; token < query.length / dim; token += 1) {
    const similarities = chunk.map((row) =>
      row.reduce((dot, value, place) => dot + value * scale * query[token * dim + place]!, 0),
    );
    sum += Math.max(...similarities);
  }
  return sum;
}

/** The results that a search of these documents must find, in any order. */
export function expected(documents: Iterable<TestDocument>): readonly Found[] {
  return [...documents].flatMap((document) =>
    document.chunks.map((chunk, chunkIndex) => ({
      docId: document.docId,
      chunkIndex,
      metadata: JSON.stringify(document.metadata),
      score: maxsim(chunk),
    })),
  );
}

/** A chunk of one row, which points along one axis. */
export function documentAt(
  docId: string,
  axis: number,
  metadata: TestDocument['metadata'] = {},
): TestDocument {
  return {
    docId,
    metadata,
    chunks: [[Array.from({ length: dim }, (_value, place) => (place === axis ? 127 : 0))]],
  };
}

/** Items that only one of the lists has. */
export function unlike<T>(one: readonly T[], other: readonly T[]): readonly T[] {
  return [...one.filter((entry) => !other.includes(entry)), ...other.filter((entry) => !one.includes(entry))];
}

/** Eight documents, `d0` removed, and a merge held at `swap`, where the catalog has moved them and memory has not. */
export async function mergeUpTo(
  swap: string,
  stage: IndexDriver & Faults & { index(): OpenIndex },
): Promise<{ readonly merging: Promise<unknown>; readonly release: () => void }> {
  for (let place = 0; place < 8; place += 1) await stage.upsert([documentAt(`d${place}`, 1)]);
  await stage.index().settled();
  await stage.remove('d0');
  const held = stage.hold(swap);
  const merging = stage.index().maintain();
  await held.reached;
  return { merging, release: () => held.release() };
}

/** Waits until nothing runs in the background, and then runs one round of upkeep. A merge that is about to end would start no other. */
export async function tend(index: OpenIndex): Promise<void> {
  while (index.busy) {
    await index.settled();
    await new Promise(setImmediate);
  }
  await index.maintain();
}

/** Runs a search and returns the ids that it finds, in order. */
export async function docIds(stage: Pick<IndexDriver, 'search'>): Promise<readonly string[]> {
  return (await stage.search()).map(({ docId }) => docId).toSorted();
}

/** Names of the segment files of the index, without their derived files. */
export async function blobsOf(stage: Stage): Promise<readonly string[]> {
  const blobs = await stage.blobs.list(`${stage.indexId}/`);
  return blobs.map(({ name }) => name).filter((name) => name.endsWith('.seg'));
}

/** Names of the segment files that the catalog has for the index. */
export async function segmentsOf(stage: Stage): Promise<readonly string[]> {
  return (await stage.catalog.loadIndexState(stage.indexId)).segments.map(({ blob }) => blob).toSorted();
}
