/**
 * A merge copies what is still needed of some sealed segments into a new one and swaps them.
 *
 * Crash-safe at every step. The target is sealed, synced and has its derived data before anything refers to
 * it. Then the catalog moves the versions, in small transactions so that no commit waits long for one; after
 * each of them the catalog is consistent, with some versions at their old and some at their new place, which
 * is what an open after a crash finds. The last transaction removes the sources. Whichever files the catalog
 * does not name are removed by the next open.
 *
 * Searches never wait and see one state: in memory all versions lie in the sources until the last
 * transaction, and change over in one turn of the event loop. Searches that began before keep the sources
 * mapped. Commits wait for the last transaction alone.
 */
import { assertInvariant } from '../../errors.ts';
import type { RecordLocation } from '../../index-state.ts';
import type { BlobStore } from '../storage/blob-store.ts';
import { removeBlobs } from '../storage/blob-removal.ts';
import type { CopyPace } from './copy-pace.ts';
import { copyRecords } from './copy-records.ts';
import type { DerivedData } from './derived-data.ts';
import type { NativeIndex, SeenRecords } from '../engine/native.ts';
import type { SegmentCatalog, SegmentSwap } from './segment-catalog.ts';
import type { SegmentWriter } from './segment-writer.ts';
import type { Segment } from './segment.ts';

export interface MergeDeps {
  readonly native: NativeIndex;
  readonly blobs: BlobStore;
  readonly catalog: SegmentCatalog;
  readonly segments: Map<number, Segment>;
  readonly writer: SegmentWriter;
  readonly derived: DerivedData;
  readonly pace: CopyPace;
  readonly nowMs: () => number;
  /** Multiplies the pace, by how far merges are behind. */
  readonly haste: () => number;
  /** Resolves when the index is closed: work at hand is given up at the next batch. */
  readonly closed: Promise<void>;
  readonly isClosed: () => boolean;
  /** The oldest generation a reader looks at. */
  readonly pinnedGeneration: () => number;
  /** Runs work while no commit is under way. */
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
  /** Called in the turn of the event loop in which records have moved. */
  readonly onMoved: () => void;
}

export interface MergeOutcome {
  /** Why it is unknown what the catalog holds. */
  readonly uncertain?: unknown;
}

/** Records of one source that were copied: `records[i]` lies at `first + i` of the target. */
interface Copied extends SeenRecords {
  readonly source: Segment;
  readonly first: number;
}

/** About 10 ms of the catalog's writer. */
const moveRowsMax = 1024;

export class Merge {
  readonly #deps: MergeDeps;
  readonly #sources: readonly Segment[];
  readonly #copied: Copied[] = [];
  #target: Segment | undefined;
  #changedOver = false;

  constructor(deps: MergeDeps, sources: readonly Segment[]) {
    this.#deps = deps;
    this.#sources = sources;
  }

  /** Rejects when it was given up with nothing changed but an unreferenced target, which is removed. */
  async run(): Promise<MergeOutcome> {
    const { native, writer, blobs, nowMs, pinnedGeneration } = this.#deps;
    const pinned = pinnedGeneration();
    if (this.#sources.some(({ id }) => native.recordsSeenSince(id, pinned).records.length > 0)) {
      const target = await writer.create();
      // Never appended to by upserts, and a crash or a failure from here leaves a segment of waste only.
      target.state = 'retired';
      target.sealing = true;
      target.wasteSinceMs = nowMs();
      await this.#copyOrAbandon(target);
      this.#target = target;
    }
    const outcome = await this.#swap();
    if (outcome.uncertain === undefined) {
      for (const { blob } of this.#sources) await removeBlobs(blobs, blob);
    }
    return outcome;
  }

  /**
   * Where memory keeps a record that the catalog may have moved already: commits name the places they find
   * in the catalog.
   */
  locate(location: RecordLocation): RecordLocation {
    if (this.#changedOver || location.segmentId !== this.#target?.id) return location;
    const from = this.#copied.findLast(({ first }) => first <= location.record);
    const record = from?.records[location.record - from.first];
    assertInvariant(from !== undefined && record !== undefined, 'every record of the target was copied');
    return { segmentId: from.source.id, record };
  }

  async #copyOrAbandon(target: Segment): Promise<void> {
    const { native, segments, catalog, blobs } = this.#deps;
    try {
      await this.#copy(target);
    } catch (error) {
      // Holds nothing but waste. Should it not even go now, a later merge takes it as a source.
      target.poisoned = true;
      await catalog.swapSegments({ removedSegmentIds: [target.id], moves: [] });
      native.dropSegment(target.id);
      segments.delete(target.id);
      await removeBlobs(blobs, target.blob);
      throw error;
    }
  }

  /** Copies everything a reader may still see, then makes the target durable, immutable and fast to search. */
  async #copy(target: Segment): Promise<void> {
    const { native, blobs, catalog, derived, pace, haste, pinnedGeneration } = this.#deps;
    let next = 0;
    for (const source of this.#sources) {
      const seen = native.recordsSeenSince(source.id, pinnedGeneration());
      await copyRecords(
        { native, pace, haste, assertOpen: () => this.#assertOpen() },
        { from: source.id, records: seen.records, to: target.id, first: next },
      );
      this.#copied.push({ source, ...seen, first: next });
      next += seen.records.length;
    }
    await native.sync(target.id);
    const info = await native.seal(target.id);
    await blobs.seal(target.blob);
    await catalog.sealSegment(target.id, info.records);
    target.state = 'sealed';
    target.sealing = false;
    target.tokenVectors = info.tokenVectors;
    await Promise.race([derived.build(target), this.#deps.closed]);
    this.#assertOpen();
  }

  /** The point of no return: catalog first, then memory in one turn of the event loop. */
  async #swap(): Promise<MergeOutcome> {
    const { catalog, exclusive, segments, native, onMoved } = this.#deps;
    try {
      for (const moves of this.#moves()) {
        this.#assertOpen();
        await catalog.swapSegments({ removedSegmentIds: [], moves });
      }
      await exclusive(async () => {
        this.#assertOpen();
        await catalog.swapSegments({ removedSegmentIds: this.#sources.map(({ id }) => id), moves: [] });
        // What died while the merge ran is noted in the sources, and nothing dies until the end.
        for (const { source, records, first } of this.#copied) {
          native.copyLifespans(source.id, records, this.#target?.id ?? 0, first);
        }
        for (const { id } of this.#sources) {
          native.dropSegment(id);
          segments.delete(id);
        }
        this.#changedOver = true;
        onMoved();
      });
    } catch (error) {
      return { uncertain: error };
    }
    return {};
  }

  *#moves(): Generator<SegmentSwap['moves']> {
    for (const { versionIds, first } of this.#copied) {
      for (let start = 0; start < versionIds.length; start += moveRowsMax) {
        yield Array.from(versionIds.subarray(start, start + moveRowsMax), (versionId, place) => ({
          versionId,
          to: { segmentId: this.#target?.id ?? 0, record: first + start + place },
        }));
      }
    }
  }

  #assertOpen(): void {
    if (this.#deps.isClosed()) throw new Error('the index is being closed');
  }
}
