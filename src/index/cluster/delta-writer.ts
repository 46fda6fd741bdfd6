/**
 * Where an upsert writes: a segment of its own, a *delta*, which is sealed and put into the object store before the
 * commit names it. Nobody else ever reads a delta that no commit has named: it goes with its upsert, and what was
 * put of it is garbage that the catalog knows.
 */
import { assertInvariant } from '../../errors.ts';
import type { NamedSegment } from '../../index-state.ts';
import { fromEngine } from '../engine/engine-errors.ts';
import type { NativeIndex, NativeRecord } from '../engine/native.ts';
import type { BornVersion } from '../publishing/publish-queue.ts';
import type { BlobCache } from '../storage/blob-cache.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { ClusterIndexCatalog } from './cluster-catalog.ts';
import { newBlob, putSegment, uncacheSegment } from './segment-objects.ts';

export interface DeltaParts {
  readonly indexId: string;
  readonly native: NativeIndex;
  readonly catalog: Pick<ClusterIndexCatalog, 'allocateSegmentId' | 'createSegment'>;
  readonly cache: BlobCache;
  readonly objects: ObjectStore;
  readonly staged: StagedSegments;
  /** Token vectors at which a delta is full. */
  readonly tokenVectorsMax: number;
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

interface Delta {
  readonly id: number;
  readonly blob: string;
  /** The catalog knows that it may be put. */
  readonly noted: Promise<void>;
  tokenVectors: number;
}

/** A new segment in the cache, to be written, sealed and put; `noted` before anything is put. */
export async function createDelta(parts: Omit<DeltaParts, 'tokenVectorsMax'>): Promise<Delta> {
  const { indexId, native, catalog, cache, staged } = parts;
  const id = await catalog.allocateSegmentId();
  const blob = newBlob(indexId);
  const noted = catalog.createSegment({ id, blob });
  // Whoever puts it waits for this.
  noted.catch(() => undefined);
  try {
    await native.createSegment(id, await cache.create(blob));
  } catch (error) {
    throw fromEngine(error);
  }
  staged.add(id, blob);
  return { id, blob, noted, tokenVectors: 0 };
}

/** Unless a commit has named it by now. */
export async function dropDelta(
  { native, cache, staged }: Pick<DeltaParts, 'native' | 'cache' | 'staged'>,
  { id, blob }: Pick<Delta, 'id' | 'blob'>,
): Promise<void> {
  if (!staged.take(id, blob)) return;
  native.dropSegment(id);
  await uncacheSegment(cache, blob);
}

/** The records of one upsert. `end` must be called, whatever happened: when they are committed, once this node has them from the catalog. */
export class DeltaSession {
  readonly #parts: DeltaParts;
  readonly #deltas: Delta[] = [];
  #finished = false;

  constructor(parts: DeltaParts) {
    this.#parts = parts;
  }

  /** Writes one record: neither durable nor visible yet. */
  async append(record: NativeRecord): Promise<BornVersion> {
    assertInvariant(!this.#finished, 'nothing is appended to a delta that was put');
    const delta = await this.#current();
    try {
      const appended = await this.#parts.native.append(delta.id, record);
      delta.tokenVectors += record.scales.length;
      return { segmentId: delta.id, record: appended.record, versionId: record.versionId };
    } catch (error) {
      throw fromEngine(error);
    }
  }

  /** Makes all records durable, where every node finds them. */
  async finish(): Promise<readonly NamedSegment[]> {
    this.#finished = true;
    return await Promise.all(
      this.#deltas.map(async (delta) => {
        try {
          const info = await this.#parts.native.seal(delta.id);
          await delta.noted;
          return await putSegment(this.#parts, delta, info);
        } catch (error) {
          throw fromEngine(error);
        }
      }),
    );
  }

  /** What no commit has named goes, and what another node has merged away already. */
  async end(): Promise<void> {
    for (const delta of this.#deltas) await dropDelta(this.#parts, delta);
  }

  async #current(): Promise<Delta> {
    const last = this.#deltas.at(-1);
    if (last !== undefined && last.tokenVectors < this.#parts.tokenVectorsMax) return last;
    const delta = await createDelta(this.#parts);
    this.#deltas.push(delta);
    return delta;
  }
}
