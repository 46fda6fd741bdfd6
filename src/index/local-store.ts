/**
 * The index store: opens indexes from what the catalog says exists, recovers them, and removes what nothing
 * refers to. Everything acknowledged is in the catalog and was synced before it got there; a record or a
 * file that the catalog does not name is the remains of work that never committed.
 */
import { unavailable, type ServiceError } from '../errors.ts';
import type { IndexState } from '../index-state.ts';
import { hasCode, withCode } from '../system-errors.ts';
import { removeBlobs, type BlobStore } from './storage/blob-store.ts';
import { CopyPace } from './segments/copy-pace.ts';
import { derivedEndings } from './segments/derived-data.ts';
import { fromEngine, hasEngineCode } from './engine/engine-errors.ts';
import type { IndexSettings } from './index-settings.ts';
import type { NativeEngine, NativeIndex } from './engine/native.ts';
import { Verification } from './segments/scrub.ts';
import { loadLifespans } from './segments/load-lifespans.ts';
import type { SegmentCatalog } from './segments/segment-catalog.ts';
import { newSegment, type Segment } from './segments/segment.ts';
import type { IndexStore, SearchPlans } from './contract.ts';
import { LocalIndex, type LocalIndexEvents } from './local-index.ts';

export interface LocalStoreDeps {
  readonly engine: NativeEngine;
  readonly blobs: BlobStore;
  /** Token vectors one search may scan exactly; 0 = measured. */
  readonly exactTokenVectorsMax: number;
  readonly settings: IndexSettings;
  readonly catalogOf: (indexId: string, tenantId?: string) => SegmentCatalog;
  readonly events: LocalIndexEvents;
}

type Opening = Parameters<IndexStore['open']>[1] & { readonly indexId: string };

/**
 * Indexes in a directory of this process alone. Opening one rejects with `internal_error` (after `onCorrupt`) when a
 * referenced record cannot be read, and with `service_unavailable` when neither model nor segment says its dimension.
 */
export function createLocalStore(deps: LocalStoreDeps) {
  const { blobs, settings } = deps;
  const shared: Shared = {
    pace: new CopyPace(settings.copyBytesPerSecond),
    verification: new Verification(),
    plans: { exact: 0, codes: 0, lists: 0, device: 0 },
  };
  return {
    verification: shared.verification,
    plans: shared.plans,
    open: (indexId, options) => openIndex(deps, shared, { indexId, ...options }),
    removeIndex: (indexId) => removeBlobs(blobs, `${indexId}/`),
    async storedIndexIds() {
      const names = await blobs.list('');
      return [...new Set(names.map(({ name }) => name.slice(0, name.indexOf('/'))))];
    },
    freeBytes: () => blobs.freeBytes(),
  } satisfies IndexStore;
}

/** What all indexes have together. */
interface Shared {
  readonly pace: CopyPace;
  readonly verification: Verification;
  readonly plans: SearchPlans;
}

async function openIndex(deps: LocalStoreDeps, shared: Shared, opening: Opening): Promise<LocalIndex> {
  const attempt = () => attemptOpen(deps, shared, opening);
  try {
    return await attempt().catch((error: unknown) => {
      if (!hasEngineCode(error, 'corrupt')) throw error;
      // Damage is certain when a second look finds it, too.
      return attempt();
    });
  } catch (error) {
    if (hasEngineCode(error, 'invalid_argument')) throw otherModel(error);
    if (hasEngineCode(error, 'corrupt')) deps.events.onCorrupt(opening.indexId, error);
    throw fromEngine(error);
  }
}

async function attemptOpen(deps: LocalStoreDeps, shared: Shared, opening: Opening): Promise<LocalIndex> {
  const { engine, blobs, settings, events } = deps;
  const { indexId, tenantId } = opening;
  const catalog = deps.catalogOf(indexId, tenantId);
  const state = await catalog.loadState();
  let native: NativeIndex | undefined;
  try {
    const dim = opening.dim ?? (await dimOf(deps, state));
    native = engine.createIndex({ dim, exactTokenVectorsMax: deps.exactTokenVectorsMax });
    const segments = await openSegments(native, blobs, catalog, state);
    await loadLifespans(native, state.versions);
    noteWaste(native, segments);
    await removeUnreferenced(blobs, indexId, state, native);
    return new LocalIndex({
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

async function dimOf({ engine, blobs }: LocalStoreDeps, state: IndexState): Promise<number> {
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
    throw hasCode(error, 'ENOENT') ? withCode('corrupt', 'a referenced segment is missing', error) : error;
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

/** This is no damage: the index opens again as soon as an encoder serves its model. */
export function otherModel(cause?: unknown): ServiceError {
  return unavailable('the encoders do not serve the model that this index was made with', cause, 30);
}
