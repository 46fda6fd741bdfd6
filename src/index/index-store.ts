/**
 * The index store: opens indexes from what the catalog says exists, recovers them, and removes what nothing
 * refers to. Everything acknowledged is in the catalog and was synced before it got there; a record or a
 * file that the catalog does not name is the remains of work that never committed.
 */
import { ServiceError } from '../errors.ts';
import type { IndexState } from '../index-state.ts';
import { hasCode } from '../system-errors.ts';
import type { BlobStore } from './storage/blob-store.ts';
import { removeBlobs } from './storage/blob-removal.ts';
import { CopyPace } from './segments/copy-pace.ts';
import { derivedEndings } from './segments/derived-data.ts';
import { fromEngine, hasEngineCode } from './engine/engine-errors.ts';
import type { IndexSettings } from './index-settings.ts';
import type { NativeEngine, NativeIndex } from './engine/native.ts';
import { Verification } from './segments/scrub.ts';
import { loadLifespans } from './segments/load-lifespans.ts';
import type { SegmentCatalog } from './segments/segment-catalog.ts';
import { newSegment, type Segment } from './segments/segment.ts';
import type { SearchPlans } from './contract.ts';
import { StoredIndex, type StoredIndexEvents } from './open-index.ts';

export interface IndexStoreOptions {
  readonly engine: NativeEngine;
  readonly blobs: BlobStore;
  /** Token vectors one search may scan exactly; 0 = measured. */
  readonly exactTokenVectorsMax: number;
  readonly settings: IndexSettings;
  readonly events: StoredIndexEvents;
}

export interface OpenIndexInput {
  readonly indexId: string;
  /** The dimension of the model whose vectors it will be given; absent = that of its segments, to keep them in shape. */
  readonly dim?: number;
  readonly catalog: SegmentCatalog;
}

export interface IndexStore {
  /**
   * Rejects with `internal_error` (after `onCorrupt`) when a referenced record cannot be read, and with
   * `service_unavailable` when neither model nor segment says its dimension.
   */
  open(input: OpenIndexInput): Promise<StoredIndex>;
  /** Removes every file of an index that is not open. */
  removeIndex(indexId: string): Promise<void>;
  /** Counts the verified records of all indexes. */
  readonly verification: Readonly<Verification>;
  readonly plans: Readonly<SearchPlans>;
  /** Every index that has files. */
  storedIndexIds(): Promise<readonly string[]>;
}

const retryOtherModelSeconds = 30;

export function createIndexStore(options: IndexStoreOptions): IndexStore {
  const { blobs, settings } = options;
  const shared: Shared = {
    pace: new CopyPace(settings.copyBytesPerSecond),
    verification: new Verification(),
    plans: { exact: 0, codes: 0, lists: 0, device: 0 },
  };
  return {
    verification: shared.verification,
    plans: shared.plans,
    open: (input) => openIndex(options, shared, input),
    removeIndex: (indexId) => removeBlobs(blobs, `${indexId}/`),
    async storedIndexIds() {
      const names = await blobs.list('');
      return [...new Set(names.map(({ name }) => name.slice(0, name.indexOf('/'))))];
    },
  };
}

/** What all indexes have together. */
interface Shared {
  readonly pace: CopyPace;
  readonly verification: Verification;
  readonly plans: SearchPlans;
}

async function openIndex(
  options: IndexStoreOptions,
  shared: Shared,
  input: OpenIndexInput,
): Promise<StoredIndex> {
  const attempt = () => attemptOpen(options, shared, input);
  try {
    return await attempt().catch((error: unknown) => {
      if (!hasEngineCode(error, 'corrupt')) throw error;
      // Damage is certain when a second look finds it, too.
      return attempt();
    });
  } catch (error) {
    if (hasEngineCode(error, 'invalid_argument')) throw otherModel(error);
    if (hasEngineCode(error, 'corrupt')) options.events.onCorrupt(input.indexId, error);
    throw fromEngine(error);
  }
}

async function attemptOpen(
  options: IndexStoreOptions,
  shared: Shared,
  input: OpenIndexInput,
): Promise<StoredIndex> {
  const { engine, blobs, settings, events } = options;
  const { indexId, catalog } = input;
  const state = await catalog.loadState();
  let native: NativeIndex | undefined;
  try {
    const dim = input.dim ?? (await dimOf(options, state));
    native = engine.createIndex({ dim, exactTokenVectorsMax: options.exactTokenVectorsMax });
    const segments = await openSegments(native, blobs, catalog, state);
    await loadLifespans(native, state.versions);
    noteWaste(native, segments);
    await removeUnreferenced(blobs, indexId, state, native);
    return new StoredIndex({
      indexId,
      dim,
      native,
      blobs,
      catalog,
      segments,
      generation: state.generation,
      engine,
      ...shared,
      settings,
      events,
    });
  } catch (error) {
    native?.close();
    throw error;
  }
}

async function dimOf({ engine, blobs }: IndexStoreOptions, state: IndexState): Promise<number> {
  const [first] = state.segments;
  if (first === undefined) throw otherModel();
  const look = { recordsReferenced: 0, firstRecord: 0, verifyBytesMax: 0 };
  return (await engine.inspectSegment(await openBlob(blobs, first.blob), look)).dim;
}

async function openSegments(
  native: NativeIndex,
  blobs: BlobStore,
  catalog: SegmentCatalog,
  state: IndexState,
): Promise<Map<number, Segment>> {
  const segments = new Map<number, Segment>();
  for (const entry of state.segments) {
    const file = await openBlob(blobs, entry.blob);
    const info = await native.openSegment(entry.id, file, {
      recordsReferenced: entry.recordsReferenced,
      sealed: entry.state === 'sealed',
    });
    const segment = newSegment(entry.id, entry.blob);
    segment.state = info.state;
    segment.tokenVectors = info.tokenVectors;
    segment.termBytes = info.termBytes;
    segments.set(entry.id, segment);
  }
  return segments;
}

/** Only a blob that is not there is damage: a store that cannot be asked says nothing about it. */
async function openBlob(blobs: BlobStore, name: string): Promise<string> {
  return blobs.open(name).catch((error: unknown) => {
    throw hasCode(error, 'ENOENT') ? missingBlob(error) : error;
  });
}

function noteWaste(native: NativeIndex, segments: ReadonlyMap<number, Segment>): void {
  // How old the waste is that an earlier process left is unknown: old enough.
  for (const info of native.segments()) {
    const segment = segments.get(info.segmentId);
    if (segment !== undefined && info.records > info.recordsLive) segment.wasteSinceMs = 0;
  }
}

/** All but the segments that the catalog names and what their searches use: what a crash left, or an earlier program. */
async function removeUnreferenced(
  blobs: BlobStore,
  indexId: string,
  state: IndexState,
  native: NativeIndex,
): Promise<void> {
  const kept = new Set([
    ...state.segments.flatMap(({ blob }) => ['', ...Object.values(derivedEndings)].map((end) => blob + end)),
    ...native.segments().map(({ codebook }) => `${indexId}/${codebook}`),
  ]);
  for (const { name } of await blobs.list(`${indexId}/`)) if (!kept.has(name)) await blobs.remove(name);
}

/** No damage: with an encoder of the right model the index opens again. */
export function otherModel(cause?: unknown): ServiceError {
  const message = 'the encoders do not serve the model that this index was made with';
  return new ServiceError('service_unavailable', message, {
    retryAfterSeconds: retryOtherModelSeconds,
    cause,
  });
}

function missingBlob(cause: unknown): Error {
  return Object.assign(new Error('a referenced segment is missing', { cause }), { code: 'corrupt' });
}
