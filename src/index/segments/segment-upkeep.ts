/**
 * What goes on in the background of one open index to keep its segments in shape: full segments are sealed,
 * sealed ones get their derived data (`derived-data.ts`) and are merged when the policy says so, one merge
 * at a time, each followed by the next that is due. What fails is reported and tried again at the next
 * occasion: the next seal, or the next round of upkeep.
 */
import type { RecordLocation } from '../../index-state.ts';
import type { BlobStore } from '../storage/blob-store.ts';
import type { CopyPace } from './copy-pace.ts';
import { DerivedData } from './derived-data.ts';
import { hasEngineCode } from '../engine/engine-errors.ts';
import type { IndexSettings } from '../index-settings.ts';
import { Merge } from './merge.ts';
import { isWasteful, liveTokenVectors, planMerge, type MergeableSegment } from './merge-policy.ts';
import type { NativeIndex, SegmentInfo } from '../engine/native.ts';
import type { SegmentCatalog } from './segment-catalog.ts';
import type { SegmentWriter } from './segment-writer.ts';
import type { Segment } from './segment.ts';
import { assertSpace } from '../storage/space.ts';

export interface SegmentUpkeepDeps {
  readonly indexId: string;
  readonly native: NativeIndex;
  readonly blobs: BlobStore;
  readonly catalog: SegmentCatalog;
  readonly segments: Map<number, Segment>;
  readonly writer: SegmentWriter;
  readonly pace: CopyPace;
  readonly settings: IndexSettings;
  readonly pinnedGeneration: () => number;
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
  readonly onMoved: () => void;
  readonly onError: (job: string, error: unknown) => void;
  /** Only the catalog knows what holds now: the index must be opened anew. */
  readonly onUncertain: (error: unknown) => void;
}

export class SegmentUpkeep {
  readonly #deps: SegmentUpkeepDeps;
  readonly #derived: DerivedData;
  readonly #jobs = new Set<Promise<void>>();
  readonly #closed = Promise.withResolvers<void>();
  #isClosed = false;
  #merge: Merge | undefined;
  #merging = false;

  constructor(deps: SegmentUpkeepDeps) {
    this.#deps = deps;
    this.#derived = new DerivedData({
      ...deps,
      tokenVectorsMin: deps.settings.codesTokenVectorsMin,
      onOutdated: (segments) => segments.forEach((segment) => this.derive(segment)),
      onError: (error) => this.#report('derived data', error),
    });
  }

  get busy(): boolean {
    return this.#jobs.size > 0;
  }

  get closed(): boolean {
    return this.#isClosed;
  }

  /** Takes up what an earlier process left: derived data to be built, merges that are due. */
  resume(): void {
    this.mendDerived();
    this.#mergeInBackground();
  }

  /** To be called when a segment is retired and no upsert writes to it any more. */
  seal(segment: Segment): void {
    if (segment.poisoned || segment.sealing) return;
    segment.sealing = true;
    this.#inBackground('seal', async () => {
      try {
        await this.#seal(segment);
      } finally {
        segment.sealing = false;
      }
      this.derive(segment);
      this.#mergeInBackground();
    });
  }

  /** Builds its codes, again if there are some. */
  derive(segment: Segment): void {
    this.#inBackground('derived data', () =>
      Promise.race([this.#derived.build(segment), this.#closed.promise]),
    );
  }

  /** Likewise its postings. */
  derivePostings(segment: Segment): void {
    this.#inBackground('derived data', () =>
      Promise.race([this.#derived.buildPostings(segment), this.#closed.promise]),
    );
  }

  /** Seals what waits for it and merges until nothing is due; resolves when all background work has ended. */
  async catchUp(): Promise<void> {
    this.#retireWastefulActive();
    this.mendDerived();
    for (const segment of this.#deps.segments.values()) {
      if (segment.state === 'retired' && segment.writers === 0) this.seal(segment);
    }
    await this.settled();
    this.#mergeInBackground();
    await this.settled();
  }

  /** Merges everything sealed into one segment, whatever the policy says. */
  async mergeAll(): Promise<void> {
    await this.settled();
    this.#mergeInBackground(true);
    await this.settled();
  }

  /** Where memory keeps what the catalog may have moved already. */
  locate(location: RecordLocation): RecordLocation {
    return this.#merge?.locate(location) ?? location;
  }

  /** Work at hand is given up as soon as it can be, and none is begun; the next open takes it up again. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#closed.resolve();
  }

  /** Resolves when no background job runs; once closed, none touches the catalog afterwards. */
  async settled(): Promise<void> {
    while (this.#jobs.size > 0) await Promise.allSettled(this.#jobs);
  }

  async #seal(segment: Segment): Promise<void> {
    const { native, blobs, catalog } = this.#deps;
    try {
      const known = native.segments().find(({ segmentId }) => segmentId === segment.id);
      // Sealed by an earlier attempt that could not note it.
      const info = known?.state === 'sealed' ? known : await native.seal(segment.id);
      await blobs.seal(segment.blob);
      await catalog.sealSegment(segment.id, info.records);
      segment.state = 'sealed';
    } catch (error) {
      // Without space it is tried again; after a failed write the file is done.
      if (hasEngineCode(error, 'io')) segment.poisoned = true;
      throw error;
    }
  }

  #mergeInBackground(all = false): void {
    if (this.#merging) return;
    this.#merging = true;
    this.#inBackground('merge', async () => {
      try {
        let sources = all ? this.#allSources() : this.#dueSources();
        while (sources.length > 0 && !this.#isClosed && (await this.#run(sources))) {
          sources = this.#dueSources();
        }
      } finally {
        this.#merging = false;
      }
    });
  }

  /** `false`: it is unknown what the catalog holds, and nothing more may be done. */
  async #run(sources: readonly Segment[]): Promise<boolean> {
    await assertSpace(this.#deps.blobs, this.#bytesOf(sources), 'a merge');
    const merge = new Merge(
      {
        ...this.#deps,
        derived: this.#derived,
        nowMs: this.#deps.settings.nowMs,
        haste: () => this.#haste(),
        closed: this.#closed.promise,
        isClosed: () => this.#isClosed,
      },
      sources,
    );
    this.#merge = merge;
    const outcome = await merge.run();
    if (outcome.uncertain !== undefined) {
      // Cut short by closing it stays known: the catalog may name places that only this merge can tell.
      if (!this.#isClosed) this.#deps.onUncertain(outcome.uncertain);
      return false;
    }
    this.#merge = undefined;
    this.#inBackground('derived data', () =>
      Promise.race([this.#derived.removeUnusedCodebooks(), this.#closed.promise]),
    );
    return true;
  }

  /** Bytes that a merge of these writes: records and what is derived from them. */
  #bytesOf(sources: readonly Segment[]): number {
    return this.#mergeable(sources).reduce(
      (bytes, segment) =>
        bytes +
        ((segment.fileBytes + segment.derivedBytes) * liveTokenVectors(segment)) /
          Math.max(1, segment.tokenVectors),
      0,
    );
  }

  #dueSources(): readonly Segment[] {
    const { segments, settings } = this.#deps;
    const plan = planMerge(
      this.#mergeable([...segments.values()].filter(isMovable)),
      {
        sealedMax: settings.sealedSegmentsMax,
        tokenVectorsMax: settings.mergeTokenVectorsMax,
        wasteTokenVectorsMax: settings.segmentTokenVectorsMax,
        wasteAgeMsMax: settings.wasteAgeMsMax,
      },
      settings.nowMs(),
    );
    return (plan?.segmentIds ?? []).flatMap((id) => segments.get(id) ?? []);
  }

  #allSources(): readonly Segment[] {
    const sources = [...this.#deps.segments.values()].filter(isMovable);
    const isCompact = this.#mergeable(sources).every(({ records, live }) => records === live);
    return sources.length === 1 && isCompact ? [] : sources;
  }

  #mergeable(
    segments: readonly Segment[],
  ): readonly (MergeableSegment & Pick<SegmentInfo, 'derivedBytes'>)[] {
    const chosen = new Set(segments);
    const pinned = this.#deps.pinnedGeneration();
    return this.#deps.native.segments().flatMap((info) => {
      const segment = this.#deps.segments.get(info.segmentId);
      if (segment === undefined || !chosen.has(segment)) return [];
      return {
        id: segment.id,
        records: info.records,
        live: this.#deps.native.recordsSeenSince(segment.id, pinned).records.length,
        tokenVectors: info.tokenVectors,
        fileBytes: info.fileBytes,
        derivedBytes: info.derivedBytes,
        wasteSinceMs: segment.wasteSinceMs,
        poisoned: segment.poisoned,
      };
    });
  }

  /** Doubles with each segment beyond the bound: writers that outrun the merges must not win for ever. */
  #haste(): number {
    const sealed = [...this.#deps.segments.values()].filter(({ state }) => state === 'sealed').length;
    return 2 ** Math.max(0, sealed - this.#deps.settings.sealedSegmentsMax - 1);
  }

  /** Waste in the active segment can only go once it takes no more records. */
  #retireWastefulActive(): void {
    const { segments, native, writer, settings } = this.#deps;
    const nowMs = settings.nowMs();
    for (const info of native.segments()) {
      const segment = segments.get(info.segmentId);
      if (segment?.state !== 'active') continue;
      // What upserts in flight have written is not waste yet; old waste is not theirs.
      const large = segment.writers === 0 ? info.fileBytes : 0;
      const found = {
        records: info.records,
        live: info.recordsLive,
        fileBytes: large,
        wasteSinceMs: segment.wasteSinceMs,
        poisoned: false,
      };
      if (isWasteful(found, settings.wasteAgeMsMax, nowMs)) writer.retire(segment);
    }
  }

  /** Builds what is missing or outdated, or was found damaged by a search. */
  mendDerived(): void {
    for (const segment of this.#derived.due()) this.derive(segment);
    for (const segment of this.#derived.withoutPostings()) this.derivePostings(segment);
  }

  #inBackground(job: string, work: () => Promise<void>): void {
    if (this.#isClosed) return;
    const running = work()
      .catch((error: unknown) => this.#report(job, error))
      .finally(() => this.#jobs.delete(running));
    this.#jobs.add(running);
  }

  #report(job: string, error: unknown): void {
    // Jobs that closing cuts short fail by design.
    if (!this.#isClosed) this.#deps.onError(job, error);
  }
}

function isMovable(segment: Segment): boolean {
  return (
    segment.state === 'sealed' || (segment.state === 'retired' && segment.poisoned && segment.writers === 0)
  );
}
