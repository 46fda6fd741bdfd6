/**
 * A segment that a node writes, a *delta*: it is sealed and put into the object store before a commit or a merge names
 * it. Nobody else ever reads one that nothing has named, and what was put of it is garbage that the catalog knows.
 */
import type { NamedSegment, RecordLocation } from '../../index-state.ts';
import { fromEngine } from '../engine/engine-errors.ts';
import type { NativeIndex, NativeRecord } from '../engine/native.ts';
import type { BlobCache } from '../storage/blob-cache.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { ClusterIndexCatalog } from './cluster-catalog.ts';
import { newBlob, putSegment, uncacheSegment } from './segment-objects.ts';

export interface DeltaDeps {
  readonly indexId: string;
  readonly native: NativeIndex;
  readonly catalog: Pick<ClusterIndexCatalog, 'allocateSegmentId' | 'createSegment'>;
  readonly cache: BlobCache;
  readonly objects: ObjectStore;
  readonly staged: StagedSegments;
}

/**
 * Segments that this node has open and the catalog may name at any moment. Whoever meets one in the catalog takes it over;
 * whoever gives one up finds out whether that has happened.
 */
export class StagedSegments {
  readonly #blobs = new Map<number, string>();

  add(id: number, blob: string): void {
    this.#blobs.set(id, blob);
  }

  /** Whether it was there; it is not any more. */
  take(id: number, blob: string): boolean {
    return this.#blobs.get(id) === blob && this.#blobs.delete(id);
  }
}

/** A name that the catalog knows: objects may be put under it, and are garbage until something names them. */
export interface Delta {
  readonly id: number;
  readonly blob: string;
}

/** Names a delta; nothing of it is here yet. */
export async function nameDelta({
  indexId,
  catalog,
}: Pick<DeltaDeps, 'indexId' | 'catalog'>): Promise<Delta> {
  const delta = { id: await catalog.allocateSegmentId(), blob: newBlob(indexId) };
  await catalog.createSegment(delta);
  return delta;
}

/** Makes its file in the cache, to be written, sealed and put. */
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
  try {
    return { segmentId: id, record: (await native.append(id, record)).record };
  } catch (error) {
    throw fromEngine(error);
  }
}

/** Makes its records durable, where every node finds them. */
export async function sealAndPut(deps: DeltaDeps, delta: Delta): Promise<NamedSegment> {
  try {
    const info = await deps.native.seal(delta.id);
    return await putSegment(deps, delta, info);
  } catch (error) {
    throw fromEngine(error);
  }
}

/** Unless something has named it by now, and this node has it from the catalog. */
export async function dropDelta(
  { native, cache, staged }: Pick<DeltaDeps, 'native' | 'cache' | 'staged'>,
  { id, blob }: Delta,
): Promise<void> {
  if (!staged.take(id, blob)) return;
  native.dropSegment(id);
  await uncacheSegment(cache, blob);
}
