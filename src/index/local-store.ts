/**
 * Keeps indexes in a directory of this process alone. It opens an index from what the catalog names, and removes the files
 * that nothing refers to. Everything acknowledged was synced before the catalog named it. So a record or a file that the
 * catalog does not name is left from work that never committed.
 */
import type { RowShape } from '../contracts/row-shape.ts';
import { assertInvariant, unavailable, type ServiceError } from '../errors.ts';
import type { IndexChanges } from '../contracts/index-state.ts';
import { hasCode, withCode } from '../system-errors.ts';
import { removeBlobs, type BlobStore } from './storage/blob-store.ts';
import { CopyPace } from './merging/copy-pace.ts';
import { noRepeats, type Repeats } from './ask-again.ts';
import { askForRoom, type MakeRoom } from './asking-for-room.ts';
import { derivedEndings, segmentOfColumn } from './segments/derived-data.ts';
import { fromEngine, hasEngineCode } from './engine/engine-errors.ts';
import type { IndexSettings } from './index-settings.ts';
import type { NativeEngine, NativeIndex } from './engine/native.ts';
import { Verification } from './segments/scrub.ts';
import { loadLifespans } from './segments/load-lifespans.ts';
import type { OwnIndexCatalog } from './catalog.ts';
import { Measuring } from './recall/measuring.ts';
import type { RecallState } from './recall/index-recall.ts';
import { readRecall, recallFile } from './recall/recall-file.ts';
import { newSegment, type Segment } from './segments/segment.ts';
import type { IndexStore, SearchPlans } from './contract.ts';
import { LocalIndex, type LocalIndexEvents } from './local-index.ts';

export interface StoreDeps<Catalog> {
  readonly engine: NativeEngine;
  /** Token vectors that one search may scan exactly; 0 = measured. */
  readonly exactTokenVectorsMax: number;
  readonly settings: IndexSettings;
  /** Whether searches wait for the engine's threads; absent = never. */
  readonly searchesWait?: () => boolean;
  /** Closes an idle index, so that one of this tenant finds room in memory; absent where nothing else is open. */
  readonly makeRoom?: MakeRoom;
  /** The catalog of one index. `tenantId`: the tenant on whose account long reads wait. */
  readonly catalogOf: (indexId: string, tenantId?: string) => Catalog;
}

/** Makes an empty index in the engine, on the account of a tenant. */
export function createNative(
  {
    engine,
    exactTokenVectorsMax,
    makeRoom,
  }: Pick<StoreDeps<never>, 'engine' | 'exactTokenVectorsMax' | 'makeRoom'>,
  repeats: Repeats,
  { shape, tenantId }: { readonly shape: RowShape; readonly tenantId: string | undefined },
): NativeIndex {
  const native = engine.createIndex({ ...shape, exactTokenVectorsMax, owner: tenantId });
  if (makeRoom !== undefined && tenantId !== undefined) askForRoom(native, repeats, () => makeRoom(tenantId));
  return native;
}

/** Shared by the measured searches of all indexes. */
export function measuringOf({
  engine,
  settings,
  searchesWait = () => false,
}: Pick<StoreDeps<never>, 'engine' | 'settings' | 'searchesWait'>): Measuring {
  return new Measuring({ settings: settings.recall, threads: engine.info.threads, searchesWait });
}

export interface LocalStoreDeps extends StoreDeps<OwnIndexCatalog> {
  readonly blobs: BlobStore;
  readonly events: LocalIndexEvents;
}

type Opening = Parameters<IndexStore['open']>[1] & { readonly indexId: string };

/**
 * Opening an index rejects with `internal_error` (after `onCorrupt`) when a referenced record cannot be read, and with
 * `service_unavailable` when neither the model nor a segment says its dimension.
 */
export function createLocalStore(deps: LocalStoreDeps) {
  const { blobs, settings } = deps;
  const shared: Shared = {
    pace: new CopyPace(settings.copyBytesPerSecond),
    verification: new Verification(),
    plans: { exact: 0, codes: 0, lists: 0, graph: 0, device: 0 },
    repeats: noRepeats(),
    measuring: measuringOf(deps),
  };
  return {
    verification: shared.verification,
    plans: shared.plans,
    repeats: shared.repeats,
    open: (indexId, options) => openIndex(deps, shared, { indexId, ...options }),
    removeIndex: (indexId) => removeBlobs(blobs, `${indexId}/`),
    async storedIndexIds() {
      const names = await blobs.list('');
      return [...new Set(names.map(({ name }) => name.slice(0, name.indexOf('/'))))];
    },
    freeBytes: () => blobs.freeBytes(),
  } satisfies IndexStore;
}

/** Shared by all indexes. */
interface Shared {
  readonly pace: CopyPace;
  readonly verification: Verification;
  readonly plans: SearchPlans;
  readonly repeats: Repeats;
  readonly measuring: Measuring;
}

async function openIndex(deps: LocalStoreDeps, shared: Shared, opening: Opening): Promise<LocalIndex> {
  const attempt = () => attemptOpen(deps, shared, opening);
  try {
    return await attempt().catch((error: unknown) => {
      if (!hasEngineCode(error, 'corrupt')) throw error;
      // A second attempt proves the damage.
      return attempt();
    });
  } catch (error) {
    if (hasEngineCode(error, 'invalid_argument')) throw otherModel(error);
    if (hasEngineCode(error, 'corrupt')) deps.events.onCorrupt(opening.indexId, error);
    throw fromEngine(error);
  }
}

async function attemptOpen(deps: LocalStoreDeps, shared: Shared, opening: Opening): Promise<LocalIndex> {
  const { blobs } = deps;
  const { indexId, tenantId } = opening;
  const catalog = deps.catalogOf(indexId, tenantId);
  const state = await catalog.changesSince({ generation: -1, segmentIds: [] });
  assertInvariant(state !== 'reopen', 'an index that has nothing misses no death');
  let native: NativeIndex | undefined;
  try {
    const shape = opening.shape ?? (await shapeOf(deps, state));
    native = createNative(deps, shared.repeats, { shape, tenantId });
    const segments = await openSegments(native, blobs, state);
    await loadLifespans(native, state.versions);
    noteWaste(native, segments);
    await removeUnreferenced(blobs, indexId, state, native);
    const { generation } = state;
    const knownRecall = await soundRecall(deps, indexId);
    const own = { indexId, shape, native, catalog, segments, generation, knownRecall };
    return new LocalIndex({ ...deps, ...shared, ...own });
  } catch (error) {
    native?.close();
    throw error;
  }
}

async function shapeOf({ engine, blobs }: LocalStoreDeps, state: IndexChanges): Promise<RowShape> {
  const [first] = state.segments;
  if (first === undefined) throw otherModel();
  return await shapeOfSegment(engine, await openBlob(blobs, first.blob));
}

/** Components of the token vectors of a segment file. */
export async function shapeOfSegment(engine: NativeEngine, file: string): Promise<RowShape> {
  const look = { recordsReferenced: 0, firstRecord: 0, verifyBytesMax: 0 };
  const { dim, rowBits } = await engine.inspectSegment(file, look);
  return { dim, rowBits };
}

async function openSegments(
  native: NativeIndex,
  blobs: BlobStore,
  state: IndexChanges,
): Promise<Map<number, Segment>> {
  const segments = new Map<number, Segment>();
  for (const entry of state.segments) {
    const file = await openBlob(blobs, entry.blob);
    const info = await native.openSegment(entry.id, file, {
      recordsReferenced: entry.records,
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

/** A missing blob is damage. Any other failure to open one is not. */
async function openBlob(blobs: BlobStore, name: string): Promise<string> {
  return blobs.open(name).catch((error: unknown) => {
    throw hasCode(error, 'ENOENT') ? withCode('corrupt', 'a referenced segment is missing', error) : error;
  });
}

function noteWaste(native: NativeIndex, segments: ReadonlyMap<number, Segment>): void {
  // Nobody knows how old the waste of an earlier process is, so it counts as old enough to be rewritten.
  for (const info of native.segments()) {
    const segment = segments.get(info.segmentId);
    if (segment !== undefined && info.records > info.recordsLive) segment.wasteSinceMs = 0;
  }
}

/** A damaged file is removed, so that it is reported once. */
async function soundRecall(
  { blobs, events }: LocalStoreDeps,
  indexId: string,
): Promise<RecallState | undefined> {
  try {
    return await readRecall(blobs, indexId);
  } catch (error) {
    events.onBackgroundError(indexId, 'recall', error);
    if (hasCode(error, 'corrupt')) await blobs.remove(recallFile(indexId));
    return undefined;
  }
}

/** Removes what a crash or an earlier release left: all but the segments that the catalog names and their derived data. */
async function removeUnreferenced(
  blobs: BlobStore,
  indexId: string,
  state: IndexChanges,
  native: NativeIndex,
): Promise<void> {
  const kept = new Set([
    ...state.segments.flatMap(({ blob }) => ['', ...Object.values(derivedEndings)].map((end) => blob + end)),
    ...native.segments().map(({ codebook }) => `${indexId}/${codebook}`),
    recallFile(indexId),
  ]);
  for (const { name } of await blobs.list(`${indexId}/`)) {
    if (!kept.has(segmentOfColumn(name) ?? name)) await blobs.remove(name);
  }
}

/** This is no damage: the index opens again as soon as an encoder serves its model. */
export function otherModel(cause?: unknown): ServiceError {
  return unavailable('the encoders do not serve the model that this index was made with', cause, 30);
}
