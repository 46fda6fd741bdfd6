/**
 * Keeps what this node has of an index in step with the catalog. Commits and merges of every node, this one too, come the
 * same way. One look at the catalog says which segments there are now, and which versions were born and died
 * since. The node fetches and opens the missing segments. Then everything changes in one turn of the event loop.
 *
 * A search that runs meanwhile sees its own generation. It may meet a moved record at both places, or at none. It notices
 * that by `swaps` and runs again.
 *
 * Searches check each record that they read, but hardly the codes. So the copies of derived data are compared with their
 * checksums: at once where the engine does not use a copy, and all of them in the background when their last comparison is
 * `verifyAgeMsMax` old. A damaged copy is reported and fetched again.
 */
import { unavailable, type ServiceError } from '../../errors.ts';
import type { IndexChanges, IndexHead, NamedSegment } from '../../contracts/index-state.ts';
import { hasCode } from '../../system-errors.ts';
import { absentParts, type AbsentParts } from '../engine/engine-errors.ts';
import type { NativeIndex } from '../engine/native.ts';
import { SharedRuns } from '../../shared-runs.ts';
import type { IndexSettings } from '../index-settings.ts';
import { CopyPace } from '../merging/copy-pace.ts';
import { derivedEndings } from '../segments/derived-data.ts';
import { loadLifespans } from '../segments/load-lifespans.ts';
import type { ValueLoader } from '../segments/value-loader.ts';
import type { BlobCache, PartialCopy } from '../storage/blob-cache.ts';
import type { IndexCatalog } from '../catalog.ts';
import type { ClusterEvents } from './cluster-events.ts';
import type { StagedSegments } from './deltas.ts';
import { openingAgain } from '../asking.ts';
import { derivedCopies, openSegmentCopy, uncacheSegment } from './segment-objects.ts';

export interface FollowerDeps {
  readonly native: NativeIndex;
  readonly catalog: Pick<IndexCatalog, 'changesSince'>;
  readonly cache: BlobCache;
  readonly staged: StagedSegments;
  readonly values: Pick<ValueLoader, 'copy'>;
  readonly settings: Pick<IndexSettings, 'nowMs' | 'verifyAgeMsMax' | 'verifyBytesPerSecond'>;
  readonly onError: (error: unknown) => void;
  readonly events?: Pick<ClusterEvents, 'caughtUp'>;
}

/** A segment that the catalog names. */
export interface FollowedSegment extends Pick<NamedSegment, 'blob' | 'files'> {
  /** When the first bytes here were no longer needed by any live version; `undefined` while all are. */
  wasteSinceMs: number | undefined;
  /** When the copies of its derived data were last compared with their checksums. */
  verifiedAtMs: number;
  /** Whether the engine used its derived data then. */
  usedDerived: boolean;
}

const noRecords = { segmentIds: new Float64Array(), records: new Uint32Array() };

export class Follower {
  readonly #deps: FollowerDeps;
  readonly #segments = new Map<number, FollowedSegment>();
  readonly #verifyPace: CopyPace;
  readonly #verifications = new SharedRuns();
  readonly #stop = new AbortController();
  /** Open segments that are still being fetched. */
  readonly #partials = new Map<number, PartialCopy>();
  readonly #completing = new WeakMap<PartialCopy, Promise<void>>();
  #generation = -1;
  #layout = -1;
  /** The epoch of all that is here; `undefined` = nothing is here. */
  #epoch: string | undefined;
  #swaps = 0;
  #running: Promise<void> | undefined;
  /** Files of segments that are gone, and whose local copies are still here. */
  readonly #removed: string[] = [];
  #lost = false;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
    this.#verifyPace = new CopyPace(deps.settings.verifyBytesPerSecond);
  }

  /** The last commit that searches here may see; -1 = none. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * The index must be opened again: the catalog has forgotten deaths that this node has not seen, it has begun another epoch,
   * or a copy is damaged.
   */
  get lost(): boolean {
    return this.#lost;
  }

  /** Whether every open segment is completely here. */
  get isWhole(): boolean {
    return this.#partials.size === 0;
  }

  /** How often records have moved to another segment. */
  get swaps(): number {
    return this.#swaps;
  }

  get segments(): ReadonlyMap<number, FollowedSegment> {
    return this.#segments;
  }

  /** Resolves when this node has reached this head. Callers share the work. */
  async reach({ generation, layout, epoch }: IndexHead): Promise<void> {
    while (this.#epoch !== epoch || this.#generation < generation || this.#layout < layout) {
      this.#assertEpoch(epoch);
      this.#running ??= this.#catchUp().finally(() => {
        this.#running = undefined;
      });
      await this.#running;
    }
  }

  /** Tells the engine about the parts that have come. */
  noteParts(): void {
    for (const [id, partial] of this.#partials) this.#deps.native.addParts(id, partial.parts);
  }

  /** Resolves when these parts are here. */
  async fetchParts({ segmentIds, parts }: AbsentParts): Promise<void> {
    const bySegment = Map.groupBy(parts.keys(), (place) => segmentIds[place] ?? 0);
    await Promise.all(
      [...bySegment].map(async ([id, places]) => {
        const partial = this.#partials.get(id);
        try {
          await partial?.need(places.map((place) => parts[place] ?? 0));
        } catch (error) {
          // The failure does not matter if a merge has removed the segment meanwhile.
          if (this.#partials.get(id) === partial) throw isUnreadable(error) ? unreadable(error) : error;
        }
      }),
    );
  }

  /** Fetches the parts that no search has waited for. Resolves when nothing is left to fetch. Never rejects. */
  async fetchRest(): Promise<void> {
    await Promise.all(
      [...this.#partials].map(([id, partial]) => {
        const completing = this.#completing.get(partial) ?? this.#complete(id, partial);
        this.#completing.set(partial, completing);
        return completing;
      }),
    );
  }

  /**
   * Compares the copies of derived data that are due with their checksums. The index must be opened again after damage.
   * Callers share the work. Never rejects.
   */
  verifyDerived(): Promise<void> {
    return this.#verifications.run(() =>
      this.#verifyDerived().catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#deps.onError(error);
      }),
    );
  }

  /** Gives up verification. */
  stop(): void {
    this.#stop.abort();
  }

  /** Resolves when no verification runs. */
  settled(): Promise<void> {
    return this.#verifications.settled();
  }

  /** Removes the copy of a segment that cannot be read. */
  async removeCopy(id: number, { blob }: FollowedSegment): Promise<void> {
    this.#lost = true;
    this.#partials.delete(id);
    await uncacheSegment(this.#deps.cache, blob);
  }

  async #catchUp(): Promise<void> {
    const { catalog, native, cache, events } = this.#deps;
    const startedAt = performance.now();
    const isFirst = this.#generation < 0;
    const changes = await catalog.changesSince({
      generation: this.#generation,
      segmentIds: [...this.#segments.keys()],
    });
    if (changes === 'reopen') {
      this.#lost = true;
      throw openingAgain(new Error('the catalog has forgotten deaths that this node has not seen'));
    }
    this.#assertEpoch(changes.epoch);
    if (isFirst) await cache.followEpoch(changes.epoch);
    const opened = await this.#openNew(changes);
    // No search runs before the first catching up has ended, so it may take many turns of the event loop.
    if (isFirst) {
      if (changes.generation > 0) native.publish(changes.generation, noRecords, noRecords);
      await loadLifespans(native, changes.versions);
    }
    // The sources of a merge are still open, and the engine takes hold of them now.
    const copies = isFirst ? [] : opened.map((segment) => this.#deps.values.copy(segment));
    this.#changeOver(changes, opened, isFirst);
    this.#uncacheRemoved(copies);
    events?.caughtUp((performance.now() - startedAt) / 1000, isFirst);
  }

  /** Refuses another epoch: numbers of two epochs cannot be compared. */
  #assertEpoch(epoch: string): void {
    if (this.#epoch === undefined || this.#epoch === epoch) return;
    this.#lost = true;
    throw openingAgain(new Error('the catalog has begun another epoch'));
  }

  /** Opens the segments that are missing here and that somebody may still see: all of them, or none. */
  async #openNew(changes: IndexChanges): Promise<readonly NamedSegment[]> {
    const { staged } = this.#deps;
    const needed = new Set(changes.versions.segmentIds);
    const unknown = changes.segments.filter(({ id }) => !this.#segments.has(id));
    const opening = await Promise.allSettled(
      unknown.map(async (segment) => {
        if (needed.has(segment.id) && !staged.take(segment.id, segment.blob)) await this.#open(segment);
      }),
    );
    try {
      const failure = opening.find((opened) => opened.status === 'rejected');
      if (failure !== undefined) throw failure.reason;
      await this.#mendDerived(unknown);
    } catch (error) {
      for (const { id } of unknown) this.#drop(id);
      throw error;
    }
    return unknown;
  }

  /**
   * Opens those segments again whose derived data the engine does not use because a copy is damaged. Segments share codebooks, so
   * they are looked at one after the other. Where all copies are intact, as those of another format are, nothing is done.
   */
  async #mendDerived(opened: readonly NamedSegment[]): Promise<void> {
    const damaged: NamedSegment[] = [];
    for (const segment of this.#withoutDerived(opened)) {
      const found = await this.#verifyCopies(segment);
      if (found.some((state) => state !== 'intact')) damaged.push(segment);
    }
    for (const { id } of damaged) this.#drop(id);
    await Promise.all(damaged.map((segment) => this.#open(segment)));
  }

  /** The open segments of these whose derived data the catalog names and the engine does not use. */
  #withoutDerived<Named extends Pick<NamedSegment, 'id' | 'files'>>(
    segments: readonly Named[],
  ): readonly Named[] {
    const infos = new Map(this.#deps.native.segments().map((info) => [info.segmentId, info]));
    return segments.filter(({ id, files }) => {
      const info = infos.get(id);
      const isNamed = (ending: string): boolean => files.some((file) => file.ending === ending);
      if (info === undefined) return false;
      const { codes, postings } = derivedEndings;
      return (isNamed(codes) && info.centroids === 0) || (isNamed(postings) && info.postingBytes === 0);
    });
  }

  async #verifyDerived(): Promise<void> {
    const { nowMs, verifyAgeMsMax } = this.#deps.settings;
    for (const [id, segment] of this.#segments) {
      const isUsed = this.#withoutDerived([{ id, files: segment.files }]).length === 0;
      if (nowMs() - segment.verifiedAtMs < verifyAgeMsMax && isUsed === segment.usedDerived) continue;
      const found = await this.#verifyCopies(segment, (bytes) =>
        this.#verifyPace.spend(bytes, 1, this.#stop.signal),
      );
      Object.assign(segment, { verifiedAtMs: nowMs(), usedDerived: isUsed });
      if (!found.includes('damaged') || this.#segments.get(id) !== segment) continue;
      this.#lost = true;
      return;
    }
  }

  async #verifyCopies(
    segment: Pick<NamedSegment, 'blob' | 'files'>,
    spend?: (bytes: number) => Promise<void>,
  ): Promise<readonly string[]> {
    const found = [];
    for (const copy of derivedCopies(segment)) found.push(await this.#deps.cache.verify(copy, spend));
    return found;
  }

  /** Opens a segment. A local copy that is damaged, or was evicted before it was opened, is fetched once more. */
  async #open(segment: NamedSegment): Promise<void> {
    const { cache, onError } = this.#deps;
    try {
      await this.#openCopy(segment);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      onError(error);
      await uncacheSegment(cache, segment.blob);
      await this.#openCopy(segment).catch((again: unknown) => {
        throw isUnreadable(again) ? unreadable(again) : again;
      });
    }
  }

  async #openCopy(segment: NamedSegment): Promise<void> {
    const { native, cache } = this.#deps;
    const { id } = segment;
    const { path, partial } = await openSegmentCopy(cache, segment);
    const expected = { recordsReferenced: segment.records, sealed: true };
    if (partial === undefined) {
      await native.openSegment(id, path, expected);
      return;
    }
    for (;;) {
      try {
        await native.openSegment(id, path, { ...expected, partial });
        break;
      } catch (error) {
        const absent = absentParts(error);
        if (absent === undefined) throw error;
        await partial.need([...absent.parts]);
      }
    }
    this.#partials.set(id, partial);
  }

  async #complete(id: number, partial: PartialCopy): Promise<void> {
    const { native, onError } = this.#deps;
    const isOpen = (): boolean => this.#partials.get(id) === partial;
    try {
      await partial.complete();
      if (!isOpen()) return;
      native.addParts(id, partial.parts);
      this.#partials.delete(id);
    } catch (error) {
      if (!isOpen()) return;
      this.#lost = true;
      onError(error);
    }
  }

  #drop(id: number): void {
    this.#partials.delete(id);
    this.#deps.native.dropSegment(id);
  }

  /** Makes all changes in one turn of the event loop. New versions become visible with the generation, at the end. */
  #changeOver(changes: IndexChanges, opened: readonly NamedSegment[], isFirst: boolean): void {
    const { native, settings } = this.#deps;
    if (!isFirst) {
      if (changes.generation > this.#generation) native.publish(changes.generation, noRecords, changes.died);
      if (changes.versions.versionIds.length > 0) native.loadLifespans(changes.versions);
    }
    for (const { id, blob, files } of opened) {
      const unverified = { verifiedAtMs: Number.NEGATIVE_INFINITY, usedDerived: true };
      this.#segments.set(id, { blob, files, wasteSinceMs: undefined, ...unverified });
    }
    this.#dropRemoved(changes);
    // Nobody knows how old the waste is that a node finds at first, so it counts as old enough to be rewritten.
    this.#noteWaste(isFirst ? 0 : settings.nowMs());
    this.#generation = changes.generation;
    this.#layout = changes.layout;
    this.#epoch = changes.epoch;
  }

  #dropRemoved({ segments }: IndexChanges): void {
    const kept = new Set(segments.map(({ id }) => id));
    for (const [id, { blob }] of this.#segments) {
      if (kept.has(id)) continue;
      this.#drop(id);
      this.#segments.delete(id);
      this.#swaps += 1;
      this.#removed.push(blob);
    }
  }

  /** Removes the local copies of segments that are gone, when `copies` have read their columns. */
  #uncacheRemoved(copies: readonly Promise<void>[]): void {
    const { cache, onError } = this.#deps;
    const removed = this.#removed.splice(0);
    void Promise.all(copies)
      .then(() => Promise.all(removed.map((blob) => uncacheSegment(cache, blob))))
      .catch(onError);
  }

  #noteWaste(sinceMs: number): void {
    for (const { segmentId, records, recordsLive } of this.#deps.native.segments()) {
      const segment = this.#segments.get(segmentId);
      if (segment !== undefined && records > recordsLive) segment.wasteSinceMs ??= sinceMs;
    }
  }
}

function isUnreadable(error: unknown): boolean {
  return hasCode(error, 'corrupt', 'ENOENT');
}

function unreadable(cause: unknown): ServiceError {
  return unavailable('a part of the index cannot be fetched', cause);
}
