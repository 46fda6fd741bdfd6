/**
 * One open index: it appends documents, makes commits visible in order and searches snapshots. In the background
 * `merging/upkeep.ts` keeps its segments in shape.
 *
 * An upsert goes through append, sync, the caller's commit, publish. The catalog decides what exists: a record that no
 * commit names is waste. A search pins the last published generation and sees the versions that were born at or before it
 * and have not died by then. The pin ends when the caller has read what belongs to the results.
 */
import type { RowShape } from '../contracts/row-shape.ts';
import type { CommitUpsertResult } from '../contracts/document-commits.ts';
import type { IndexChanges, RecordLocation } from '../contracts/index-state.ts';
import { assertInvariant } from '../errors.ts';
import { SharedRuns } from '../shared-runs.ts';
import type {
  Asker,
  CommitWork,
  IndexReader,
  IndexStatistics,
  IndexWriter,
  OpenIndex,
  SearchPlans,
} from './contract.ts';
import type { CopyPace } from './merging/copy-pace.ts';
import type { Repeats } from './ask-again.ts';
import { alone, openingAgain } from './asking.ts';
import { commitUpsert } from './catalog.ts';
import { EngineAsks } from './engine-asks.ts';
import { fromEngine, unreadRecord } from './engine/engine-errors.ts';
import type { NativeEngine, NativeMatching, NativeRecord, NativeSearch } from './engine/native.ts';
import { PublishQueue, type BornVersion, type Commit } from './publishing/publish-queue.ts';
import { IndexRecall, type BreadthMove, type RecallReport, type RecallState } from './recall/index-recall.ts';
import type { Measuring } from './recall/measuring.ts';
import { writeRecall } from './recall/recall-file.ts';
import { Scrub, type Verification } from './segments/scrub.ts';
import { SegmentUpkeep } from './merging/upkeep.ts';
import { SegmentWriter } from './segments/segment-writer.ts';
import type { SegmentDeps } from './segments/segment.ts';
import { ValueLoader } from './segments/value-loader.ts';
import { slicedCount, slicedSearch, whole, type Sliced } from './slices.ts';
import { SharedLock } from './publishing/shared-lock.ts';
import { SnapshotPins } from './publishing/snapshot-pins.ts';

export interface LocalIndexEvents {
  /** A job in the background failed. It is tried again with the next seal or the next round of upkeep. */
  readonly onBackgroundError: (indexId: string, job: string, error: unknown) => void;
  readonly onBreadth?: (indexId: string, move: BreadthMove) => void;
  /** Two reads found the same referenced data damaged. */
  readonly onCorrupt: (indexId: string, error: unknown) => void;
}

export interface LocalIndexDeps extends SegmentDeps {
  readonly shape: RowShape;
  readonly generation: number;
  /** The pace of the merges of all indexes together. */
  readonly pace: CopyPace;
  readonly engine: Pick<
    NativeEngine,
    'inspectSegment' | 'inspectCodes' | 'inspectPostings' | 'inspectColumn'
  >;
  readonly verification: Verification;
  readonly plans: SearchPlans;
  readonly repeats: Repeats;
  readonly measuring: Measuring;
  readonly knownRecall?: RecallState | undefined;
  readonly events: LocalIndexEvents;
}

export class LocalIndex implements OpenIndex {
  readonly #deps: LocalIndexDeps;
  readonly #writer: SegmentWriter;
  readonly #queue: PublishQueue;
  readonly #pins = new SnapshotPins();
  /**
   * Commits share it. The end of a merge takes it alone, so that no commit is in the catalog and not yet in memory meanwhile.
   */
  readonly #commits = new SharedLock();
  readonly #upkeep: SegmentUpkeep;
  readonly #scrub: Scrub;
  readonly #values: ValueLoader;
  readonly #asks: EngineAsks;
  readonly #recall: IndexRecall;
  /** How many merges have moved records. */
  #swaps = 0;
  /** The catalog has forgotten the versions that died up to this generation. */
  #forgotten = 0;
  readonly #maintenance = new SharedRuns();
  #failure: unknown;
  #closed = false;

  constructor(deps: LocalIndexDeps) {
    this.#deps = deps;
    this.#queue = new PublishQueue(deps.generation, (commit) => this.#publish(commit));
    this.#values = new ValueLoader({
      ...deps,
      columns: deps.blobs,
      blobOf: (id) => deps.segments.get(id)?.blob,
      onError: (error) => this.#noteBackgroundError('columns', error),
    });
    this.#asks = new EngineAsks({
      ...deps,
      values: this.#values,
      assertUsable: () => this.#assertUsable(),
      onFailed: (error) => this.#verifyUnread(error),
    });
    this.#writer = new SegmentWriter({ ...deps, onRetired: (segment) => this.#upkeep.seal(segment) });
    this.#upkeep = new SegmentUpkeep({
      ...deps,
      writer: this.#writer,
      values: this.#values,
      pinnedGeneration: () => this.#pins.oldest(this.#queue.published),
      exclusive: (work) => this.#commits.exclusive(work),
      onMoved: () => {
        this.#swaps += 1;
      },
      onError: (job, error) => this.#noteBackgroundError(job, error),
      onUncertain: (error) => this.#fail(error),
    });
    this.#scrub = new Scrub({
      ...deps,
      counts: deps.verification,
      pinnedGeneration: () => this.#pins.oldest(this.#queue.published),
      onCorrupt: (error) => deps.events.onCorrupt(deps.indexId, error),
      onDamagedCodes: (segment) => this.#upkeep.derive(segment),
      onDamagedPostings: (segment) => this.#upkeep.derivePostings(segment),
      onError: (error) => this.#noteBackgroundError('verification', error),
    });
    this.#recall = new IndexRecall({
      measuring: deps.measuring,
      segments: () => deps.native.segments(),
      ask: (search) => deps.measuring.inTurns(() => slicedSearch(deps.native, search)),
      moves: () => this.#swaps,
      known: deps.knownRecall,
      onMove: (move) => deps.events.onBreadth?.(deps.indexId, move),
      save: (state) => writeRecall(deps.blobs, deps.indexId, state),
    });
    this.#resumeSegments();
  }

  /** Resolves when every sealed segment has been compared with its checksums within `verifyAgeMsMax`. */
  verified(): Promise<void> {
    return this.#scrub.run();
  }

  get shape(): RowShape {
    return this.#deps.shape;
  }

  get usable(): boolean {
    return this.#failure === undefined && !this.#closed;
  }

  get recall(): RecallReport | undefined {
    return this.#recall.report;
  }

  get busy(): boolean {
    return this.#upkeep.busy || this.#maintenance.busy;
  }

  async write<T>(work: (writer: IndexWriter) => Promise<T>): Promise<T> {
    const session = this.#writer.begin();
    const born: BornVersion[] = [];
    let appends = 0;
    try {
      return await work({
        append: async (record) => {
          this.#assertUsable();
          const place = appends;
          appends += 1;
          const location = await session.append(record);
          born[place] = { ...location, versionId: record.versionId };
        },
        commit: async (upsert) => {
          await session.sync();
          return await this.#commit(born, async (): Promise<CommitWork<CommitUpsertResult>> => {
            // The catalog has known the segments since they were made: the commit names none.
            const input = upsert({ locations: born, segments: [] });
            const result = await commitUpsert(this.#deps.catalog, input);
            if (result.outcome !== 'committed') return { result };
            session.committed();
            return { result, commit: result };
          });
        },
      });
    } finally {
      session.end();
    }
  }

  commitDelete<T>(transaction: () => Promise<CommitWork<T>>): Promise<T> {
    return this.#commit([], transaction);
  }

  async readRecord({ segmentId, record }: RecordLocation): Promise<NativeRecord | undefined> {
    this.#assertUsable();
    try {
      return await this.#deps.native.readRecord(segmentId, record);
    } catch (error) {
      if (!this.#deps.segments.has(segmentId)) return undefined;
      this.#verifyUnread(error);
      throw fromEngine(error);
    }
  }

  async catchUp(generation: number): Promise<void> {
    // Commits of later generations hold the lock and wait for this one. A merge waits for those commits. So this one must
    // pass the merge in the queue of the lock.
    await this.#commits.sharedFirst(async () => {
      if (generation > this.#queue.published) await this.#catchUpLocked();
    });
  }

  async read<T>(work: (reader: IndexReader) => Promise<T>): Promise<T> {
    const generation = this.#queue.published;
    this.#pins.pin(generation);
    try {
      return await work({
        search: async (search, asker = alone) => {
          const wanted = { ...search, breadth: this.#recall.breadth };
          const found = await this.#ask(wanted, generation, asker, (asked) =>
            slicedSearch(this.#deps.native, asked),
          );
          if (found.codesLost) this.#upkeep.mendDerived();
          this.#deps.plans[found.plan] += 1;
          if (this.#recall.chooses(found.plan)) void this.#measure({ ...wanted, generation });
          return found;
        },
        matching: (matching, asker = alone) =>
          this.#ask(matching, generation, asker, (asked) => whole(() => this.#deps.native.matching(asked))),
        tokenVectors: (matching, asker = alone) =>
          this.#ask(matching, generation, asker, (asked) =>
            whole(() => this.#deps.native.tokenVectors(asked)),
          ),
        countSpans: (counting, asker = alone) =>
          this.#ask(counting, generation, asker, (asked) => whole(() => this.#deps.native.countSpans(asked))),
        countValues: (counting, asker = alone) =>
          this.#ask(counting, generation, asker, (asked) => slicedCount(this.#deps.native, asked)),
        findValue: (object, field, key) => this.#deps.native.findValue(object, field, key),
        statistics: async () => this.statistics(),
      });
    } finally {
      this.#pins.unpin(generation);
    }
  }

  maintain(): Promise<void> {
    return this.#maintenance.run(() =>
      this.#maintain().catch((error: unknown) => this.#noteBackgroundError('maintenance', error)),
    );
  }

  /** Does what `maintain` does, then merges everything into one segment. */
  async mergeAll(): Promise<void> {
    for (const segment of this.#deps.segments.values()) this.#writer.retire(segment);
    await this.maintain();
    await this.#upkeep.mergeAll();
  }

  statistics(): IndexStatistics {
    const segments = this.#deps.native.segments();
    const recordsLive = segments.reduce((sum, segment) => sum + segment.recordsLive, 0);
    return { indexId: this.#deps.indexId, segments, recordsLive, recall: this.recall };
  }

  windDown(): void {
    this.#upkeep.close();
    this.#scrub.stop();
    this.#recall.stop();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.windDown();
    this.#queue.fail(openingAgain());
    this.#deps.native.close();
  }

  async settled(): Promise<void> {
    await Promise.all([this.#upkeep.settled(), this.#recall.settled(), this.#values.settled()]);
  }

  #ask<Asked extends Omit<NativeMatching, 'generation'>, T>(
    asked: Asked,
    generation: number,
    asker: Asker,
    begin: (asked: Asked & { readonly generation: number }) => Sliced<T>,
  ): Promise<T> {
    const endsAt = performance.now() + asked.timeoutMs;
    const snapshot = () => ({ generation, moves: this.#swaps });
    return this.#asks.ask(asked, { ...asker, endsAt, snapshot }, begin);
  }

  async #measure(search: NativeSearch): Promise<void> {
    this.#pins.pin(search.generation);
    try {
      await this.#recall.measure(search);
    } catch (error) {
      this.#noteBackgroundError('recall', error);
    } finally {
      this.#pins.unpin(search.generation);
    }
  }

  #commit<T>(born: readonly BornVersion[], transaction: () => Promise<CommitWork<T>>): Promise<T> {
    return this.#commits.shared(async () => {
      this.#assertUsable();
      let committed: CommitWork<T>;
      try {
        committed = await transaction();
      } catch (error) {
        // The failure does not say whether the transaction committed. The catalog decides what is visible.
        await this.#catchUpLocked();
        throw error;
      }
      if (committed.commit !== undefined) await this.#queue.submit({ ...committed.commit, born });
      return committed.result;
    });
  }

  async #catchUpLocked(): Promise<void> {
    try {
      const { catalog, segments } = this.#deps;
      const { published: generation } = this.#queue;
      const changes = await catalog.changesSince({ generation, segmentIds: [...segments.keys()] });
      assertInvariant(changes !== 'reopen', 'only this process forgets deaths');
      await Promise.all(
        commitsBeyond(this.#queue.published, changes).map((commit) => this.#queue.submit(commit)),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A commit that cannot be applied here is in the catalog all the same, so the index must be opened again from there. */
  #publish(commit: Commit): void {
    try {
      this.#apply(commit);
    } catch (error) {
      this.#noteBackgroundError('publishing', error);
      this.#fail(error);
      throw error;
    }
  }

  /** Makes one commit visible, here and in the engine, within one turn of the event loop. */
  #apply(commit: Commit): void {
    const { native, segments, settings } = this.#deps;
    const died = commit.died.map((location) => this.#upkeep.locate(location));
    native.publish(commit.generation, columnsOf(commit.born), columnsOf(died));
    for (const { segmentId } of died) {
      const segment = segments.get(segmentId);
      if (segment !== undefined) segment.wasteSinceMs ??= settings.nowMs();
    }
  }

  async #maintain(): Promise<void> {
    const forgettable = this.#pins.oldest(this.#queue.published);
    if (forgettable > this.#forgotten) {
      await this.#deps.catalog.forgetDeadVersions(forgettable);
      this.#forgotten = forgettable;
    }
    await this.#upkeep.catchUp();
    // A pass takes as long as its pace asks for: nobody waits for it.
    if (this.usable && !this.#upkeep.closed) void this.#scrub.run();
  }

  #resumeSegments(): void {
    const { segments, native } = this.#deps;
    const active = [...segments.values()].filter((segment) => segment.state === 'active');
    const [newest, ...older] = active.toSorted((a, b) => b.id - a.id);
    for (const segment of older) this.#writer.retire(segment);
    if (newest !== undefined) this.#writer.resume(newest);
    // Records of a segment of an earlier format have no ranges, so it takes no more.
    const takesRanges = native.segments().find(({ segmentId }) => segmentId === newest?.id)?.keepsRanges;
    if (newest !== undefined && takesRanges !== true) this.#writer.retire(newest);
    this.#upkeep.resume();
  }

  #noteBackgroundError(job: string, error: unknown): void {
    // Closing makes running jobs fail: that is no error.
    if (this.#closed) return;
    this.#verifyUnread(error);
    this.#deps.events.onBackgroundError(this.#deps.indexId, job, error);
  }

  /** A failed read does not prove damage: the record is read again before the index is marked. */
  #verifyUnread(error: unknown): void {
    const unread = unreadRecord(error);
    if (unread !== undefined) void this.#scrub.verifyRecord(unread);
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#queue.fail(openingAgain(error));
  }

  #assertUsable(): void {
    if (!this.usable) throw openingAgain(this.#failure);
  }
}

/** The commits after generation `published` that the catalog has, in order. */
function commitsBeyond(published: number, changes: IndexChanges): Commit[] {
  const commits: { generation: number; born: BornVersion[]; died: RecordLocation[] }[] = [];
  for (let generation = published + 1; generation <= changes.generation; generation += 1) {
    commits.push({ generation, born: [], died: [] });
  }
  const dies = (location: RecordLocation, died = 0): void => {
    commits[died - published - 1]?.died.push(location);
  };
  const { versions, died: deaths } = changes;
  for (const [row, versionId] of versions.versionIds.entries()) {
    const location = locationOf(versions, row);
    commits[(versions.born[row] ?? 0) - published - 1]?.born.push({ ...location, versionId });
    dies(location, versions.died[row]);
  }
  for (const [row, died] of deaths.died.entries()) dies(locationOf(deaths, row), died);
  return commits;
}

function locationOf(
  { segmentIds, records }: { readonly segmentIds: ArrayLike<number>; readonly records: ArrayLike<number> },
  row: number,
): RecordLocation {
  return { segmentId: segmentIds[row] ?? 0, record: records[row] ?? 0 };
}

function columnsOf(locations: readonly RecordLocation[]) {
  return {
    segmentIds: Float64Array.from(locations, (location) => location.segmentId),
    records: Uint32Array.from(locations, (location) => location.record),
  };
}
