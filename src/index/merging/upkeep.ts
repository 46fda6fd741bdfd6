/**
 * Background work that keeps the segments of a directory in shape. It seals full segments, builds their derived data
 * (`derived-data.ts`), and merges them when the policy says so. A job that fails is reported. The next seal or the next
 * round of upkeep tries it again.
 */
import type { RecordLocation } from '../../contracts/index-state.ts';
import { DerivedData } from '../segments/derived-data.ts';
import { hasEngineCode } from '../engine/engine-errors.ts';
import type { Segment } from '../segments/segment.ts';
import type { CopyPace } from './copy-pace.ts';
import { DirectoryMerges, type DirectoryMergesDeps } from './directory-merges.ts';
import { isWasteful } from './merge-policy.ts';
import { Merges } from './merges.ts';

export interface SegmentUpkeepDeps extends Omit<DirectoryMergesDeps, 'derived' | 'closed' | 'onMerged'> {
  /** The pace of the merges of all indexes together. */
  readonly pace: CopyPace;
  readonly onError: (job: string, error: unknown) => void;
}

export class SegmentUpkeep {
  readonly #deps: SegmentUpkeepDeps;
  readonly #derived: DerivedData;
  readonly #directory: DirectoryMerges;
  readonly #merges: Merges;
  readonly #jobs = new Set<Promise<void>>();
  readonly #closed = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(deps: SegmentUpkeepDeps) {
    this.#deps = deps;
    this.#derived = new DerivedData({
      ...deps,
      onOutdated: (segments) => segments.forEach((segment) => this.derive(segment)),
      onError: (error) => this.#report('derived data', error),
    });
    this.#directory = new DirectoryMerges({
      ...deps,
      derived: this.#derived,
      closed: this.#closed.promise,
      onMerged: () => this.#deriveInBackground(() => this.#derived.removeUnusedCodebooks()),
      // After `close` commits in flight still need the merge: the catalog may name places that only it can translate.
      onUncertain: (error) => !this.#isClosed && deps.onUncertain(error),
    });
    this.#merges = new Merges({ ...deps, host: this.#directory });
  }

  get busy(): boolean {
    return this.#jobs.size > 0 || this.#merges.busy;
  }

  get closed(): boolean {
    return this.#isClosed;
  }

  /** Takes up what an earlier process left: derived data to be built, merges that are due. */
  resume(): void {
    this.mendDerived();
    void this.#merges.run();
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
      void this.#merges.run();
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
    await this.#merges.run();
    await this.settled();
  }

  /** Merges everything sealed into one segment, whatever the policy says. */
  async mergeAll(): Promise<void> {
    await this.settled();
    await this.#merges.runAll();
    await this.settled();
  }

  /** Where memory keeps a record that the catalog may have moved already. */
  locate(location: RecordLocation): RecordLocation {
    const merge = this.#merges.unfinished;
    return merge === undefined ? location : this.#directory.locate(merge, location);
  }

  /** Gives up running work at its next step and begins none. The next open takes it up again. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#merges.close();
    this.#closed.resolve();
  }

  /** Resolves when no background job runs. After `close` none will touch the catalog from then on. */
  async settled(): Promise<void> {
    while (this.busy) await Promise.allSettled([...this.#jobs, this.#merges.settled()]);
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
