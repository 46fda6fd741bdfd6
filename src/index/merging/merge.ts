/**
 * A merge copies the records that are still needed from some sealed segments (the sources) into a new one (the target),
 * which takes their place.
 *
 * A crash at any step loses nothing. The target is sealed, synced and has its derived data before anything refers to it. Then
 * the catalog moves the versions, in small transactions so that no commit waits long. After each of them the catalog is
 * consistent: some versions are at their new place, the others at their old one. The last transaction removes the sources.
 * The next open removes the files that the catalog does not name.
 *
 * Searches never wait. In memory all versions lie in the sources until the last transaction, then all move in one turn of
 * the event loop. Searches that began before keep the sources mapped. Commits wait for the last transaction alone.
 */
import { assertInvariant } from '../../errors.ts';
import type { RecordLocation } from '../../contracts/index-state.ts';
import { removeBlobs } from '../storage/blob-store.ts';
import { copyRecords, type CopyDeps } from './copy-records.ts';
import type { DerivedData } from '../segments/derived-data.ts';
import type { SeenRecords } from '../engine/native.ts';
import type { SegmentSwap } from '../catalog.ts';
import type { SegmentWriter } from '../segments/segment-writer.ts';
import type { Segment, SegmentDeps } from '../segments/segment.ts';

export interface MergeDeps extends SegmentDeps, Pick<CopyDeps, 'pace' | 'haste'> {
  readonly writer: SegmentWriter;
  readonly derived: DerivedData;
  /** Resolves when the index is closed. A merge gives up at its next batch then. */
  readonly closed: Promise<void>;
  readonly isClosed: () => boolean;
  readonly pinnedGeneration: () => number;
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
  /** Called in the turn of the event loop in which records move. */
  readonly onMoved: () => void;
}

export interface MergeOutcome {
  /** Set when it is unknown what the catalog holds: why. */
  readonly uncertain?: unknown;
}

/** The records of one source that were copied. `records[i]` lies at `first + i` of the target. */
interface Copied extends SeenRecords {
  readonly source: Segment;
  readonly first: number;
}

/** One transaction takes about 10 ms of the catalog's writer. */
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

  /** Rejects when it was given up before the catalog changed. The target is removed then. */
  async run(): Promise<MergeOutcome> {
    const { native, writer, blobs, settings, pinnedGeneration } = this.#deps;
    const pinned = pinnedGeneration();
    if (this.#sources.some(({ id }) => native.recordsSeenSince(id, pinned).records.length > 0)) {
      const target = await writer.create();
      // No upsert appends to it. After a crash or a failure it holds nothing but waste.
      target.state = 'retired';
      target.sealing = true;
      target.wasteSinceMs = settings.nowMs();
      await this.#copyOrAbandon(target);
      this.#target = target;
    }
    const outcome = await this.#swap();
    if (outcome.uncertain === undefined) {
      for (const { blob } of this.#sources) await removeBlobs(blobs, blob);
    }
    return outcome;
  }

  /** Translates a place in the target, which a commit found in the catalog, into the source where memory keeps the record. */
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
      // It holds nothing but waste. If it cannot be removed now, a later merge takes it as a source.
      target.unwritable = true;
      await catalog.swapSegments({ removedSegmentIds: [target.id], moves: [] });
      native.dropSegment(target.id);
      segments.delete(target.id);
      await removeBlobs(blobs, target.blob);
      throw error;
    }
  }

  /** Copies everything that a reader may still see, then makes the target durable, immutable and fast to search. */
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

  /** Moves the versions: first in the catalog, then in memory. From the first transaction on there is no way back. */
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
        // The sources have noted the versions that died while the merge ran. None dies while this runs.
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
