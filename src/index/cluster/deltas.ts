/**
 * A *delta* is a segment that a node writes. The node seals it and puts it into the object store before a commit or a merge
 * names it. No other node reads it before that. If nothing ever names it, the catalog knows its objects as garbage.
 */
import type { NamedSegment, RecordLocation } from '../../contracts/index-state.ts';
import { fromEngine, throughEngine } from '../engine/engine-errors.ts';
import type { NativeIndex, NativeRecord } from '../engine/native.ts';
import type { BlobCache } from '../storage/blob-cache.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { IndexCatalog } from '../catalog.ts';
import { newBlob, putSegment, uncacheSegment } from './segment-objects.ts';

export interface DeltaDeps {
  readonly indexId: string;
  readonly native: NativeIndex;
  readonly catalog: Pick<IndexCatalog, 'allocateSegmentId' | 'createSegment'>;
  readonly cache: BlobCache;
  readonly objects: ObjectStore;
  readonly staged: StagedSegments;
}

/**
 * Deltas that this node has open and that the catalog may name at any moment. Two may want one: the follower that meets it in
 * the catalog, and the writer that gives it up. The first of them to `take` it has it.
 */
export class StagedSegments {
  readonly #blobs = new Map<number, string>();

  add(id: number, blob: string): void {
    this.#blobs.set(id, blob);
  }

  /** Removes a delta from here. Returns whether it was here. */
  take(id: number, blob: string): boolean {
    return this.#blobs.get(id) === blob && this.#blobs.delete(id);
  }
}

/** A name that the catalog knows. Objects that are put under it are garbage until a commit or a merge names them. */
export interface Delta {
  readonly id: number;
  readonly blob: string;
}

/** Gets a name for a delta from the catalog. Its file does not exist yet. */
export async function nameDelta({
  indexId,
  catalog,
}: Pick<DeltaDeps, 'indexId' | 'catalog'>): Promise<Delta> {
  const delta = { id: await catalog.allocateSegmentId(), blob: newBlob(indexId) };
  await catalog.createSegment(delta);
  return delta;
}

/** Makes the file of a delta in the cache. */
export async function openDelta({ native, cache, staged }: DeltaDeps, { id, blob }: Delta): Promise<void> {
  try {
    await native.createSegment(id, await cache.create(blob));
  } catch (error) {
    await uncacheSegment(cache, blob);
    throw fromEngine(error);
  }
  staged.add(id, blob);
}

export async function createDelta(deps: DeltaDeps): Promise<Delta> {
  const delta = await nameDelta(deps);
  await openDelta(deps, delta);
  return delta;
}

export async function appendTo(
  { native }: Pick<DeltaDeps, 'native'>,
  { id }: Delta,
  record: NativeRecord,
): Promise<RecordLocation> {
  return { segmentId: id, ...(await throughEngine(() => native.append(id, record))) };
}

/** Makes the records of a delta durable in the object store. */
export function sealAndPut(deps: DeltaDeps, delta: Delta): Promise<NamedSegment> {
  return throughEngine(async () => putSegment(deps, delta, await deps.native.seal(delta.id)));
}

/** Drops a delta, unless the catalog has named it and the follower has taken it. */
export async function dropDelta(
  { native, cache, staged }: Pick<DeltaDeps, 'native' | 'cache' | 'staged'>,
  { id, blob }: Delta,
): Promise<void> {
  if (!staged.take(id, blob)) return;
  native.dropSegment(id);
  await uncacheSegment(cache, blob);
}
