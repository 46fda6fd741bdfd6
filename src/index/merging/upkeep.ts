/**
 * Background work that keeps the segments of an open index in shape. It seals full segments, builds their derived data
 * (`derived-data.ts`), and merges them when the policy says so, one merge at a time. A job that fails is reported. The
 * next seal or the next round of upkeep tries it again.
 */
import type { RecordLocation } from '../../contracts/index-state.ts';
import { DerivedData } from '../segments/derived-data.ts';
import { hasEngineCode } from '../engine/engine-errors.ts';
import { Merge, type MergeDeps } from './merge.ts';
import { hasteOf, isWasteful, liveTokenVectors, planMerge, type MergeableSegment } from './merge-policy.ts';
import type { SegmentInfo } from '../engine/native.ts';
import type { Segment, SegmentDeps } from '../segments/segment.ts';
import { assertSpace } from '../storage/blob-store.ts';

export interface SegmentUpkeepDeps
  extends SegmentDeps, Pick<MergeDeps, 'writer' | 'pace' | 'pinnedGeneration' | 'exclusive' | 'onMoved'> {
  readonly onError: (job: string, error: unknown) => void;
  /** It is unknown what the catalog holds: the index must be opened again. */
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

  /** Seals a segment that is retired and that no upsert writes to any more. */
  seal(segment: Segment): void {
    if (segment.unwritable || segment.sealing) return;
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

  /** Builds the codes of a segment, even if it has some. */
  derive(segment: Segment): void {
    this.#deriveInBackground(() => this.#derived.build(segment));
  }

  derivePostings(segment: Segment): void {
    this.#deriveInBackground(() => this.#derived.buildPostings(segment));
  }

  /** Seals retired segments and merges until nothing is due. Resolves when all background work has ended. */
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

  /** Where memory keeps a record that the catalog may have moved already. */
  locate(location: RecordLocation): RecordLocation {
    return this.#merge?.locate(location) ?? location;
  }

  /** Gives up running work at its next step and begins none. The next open takes it up again. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#closed.resolve();
  }

  /** Resolves when no background job runs. After `close` none will touch the catalog from then on. */
  async settled(): Promise<void> {
    while (this.#jobs.size > 0) await Promise.allSettled(this.#jobs);
  }

  async #seal(segment: Segment): Promise<void> {
    const { native, blobs, catalog } = this.#deps;
    try {
      const known = native.segments().find(({ segmentId }) => segmentId === segment.id);
      // An earlier attempt may have sealed it and failed to note that in the catalog.
      const info = known?.state === 'sealed' ? known : await native.seal(segment.id);
      await blobs.seal(segment.blob);
      await catalog.sealSegment(segment.id, info.records);
      segment.state = 'sealed';
    } catch (error) {
      // For want of space sealing is tried again. After a failed write the file takes no more.
      if (hasEngineCode(error, 'io')) segment.unwritable = true;
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

  /** Returns false when it is unknown what the catalog holds: then nothing more may be done. */
  async #run(sources: readonly Segment[]): Promise<boolean> {
    await assertSpace(this.#deps.blobs, this.#bytesOf(sources), 'a merge');
    const merge = new Merge(
      {
        ...this.#deps,
        derived: this.#derived,
        haste: () => this.#haste(),
        closed: this.#closed.promise,
        isClosed: () => this.#isClosed,
      },
      sources,
    );
    this.#merge = merge;
    const outcome = await merge.run();
    if (outcome.uncertain !== undefined) {
      // After `close` commits in flight still need this merge: the catalog may name places that only it can translate.
      if (!this.#isClosed) this.#deps.onUncertain(outcome.uncertain);
      return false;
    }
    this.#merge = undefined;
    this.#deriveInBackground(() => this.#derived.removeUnusedCodebooks());
    return true;
  }

  /** How many bytes a merge of these segments writes: records and derived data. */
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
    const plan = planMerge(this.#mergeable([...segments.values()].filter(isMovable)), settings);
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
        unwritable: segment.unwritable,
      };
    });
  }

  #haste(): number {
    const sealed = [...this.#deps.segments.values()].filter(({ state }) => state === 'sealed');
    return hasteOf(sealed.length, this.#deps.settings);
  }

  /** The waste of an active segment can go only when the segment takes no more records. */
  #retireWastefulActive(): void {
    const { segments, native, writer, settings } = this.#deps;
    for (const info of native.segments()) {
      const segment = segments.get(info.segmentId);
      if (segment?.state !== 'active') continue;
      const found = {
        records: info.records,
        live: info.recordsLive,
        // Records of upserts in flight look like waste. So their bytes do not count, and the age of the waste alone does.
        fileBytes: segment.writers === 0 ? info.fileBytes : 0,
        wasteSinceMs: segment.wasteSinceMs,
        unwritable: false,
      };
      if (isWasteful(found, settings)) writer.retire(segment);
    }
  }

  /** Builds derived data that is missing, outdated, or was found damaged by a search. */
  mendDerived(): void {
    for (const segment of this.#derived.due()) this.derive(segment);
    for (const segment of this.#derived.withoutPostings()) this.derivePostings(segment);
  }

  /** A build cannot be cut short: after `close` nobody waits for it. */
  #deriveInBackground(work: () => Promise<void>): void {
    this.#inBackground('derived data', () => Promise.race([work(), this.#closed.promise]));
  }

  #inBackground(job: string, work: () => Promise<void>): void {
    if (this.#isClosed) return;
    const running = work()
      .catch((error: unknown) => this.#report(job, error))
      .finally(() => this.#jobs.delete(running));
    this.#jobs.add(running);
  }

  #report(job: string, error: unknown): void {
    // Closing makes running jobs fail: that is no error.
    if (!this.#isClosed) this.#deps.onError(job, error);
  }
}

function isMovable(segment: Segment): boolean {
  return (
    segment.state === 'sealed' || (segment.state === 'retired' && segment.unwritable && segment.writers === 0)
  );
}
