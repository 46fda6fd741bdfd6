/**
 * One open index: appends documents, makes commits visible in order and searches snapshots, while its
 * segments are kept in shape in the background (`segment-upkeep.ts`).
 *
 * Order of an upsert: append -> sync -> the caller's commit -> publish. The catalog decides what
 * exists; a record no commit refers to is waste. A search pins the last published generation and sees the
 * versions born at or before it and not yet dead at it, until the caller has read what belongs to them.
 */
import type { CommitUpsertResult } from '../document-commits.ts';
import { ServiceError } from '../errors.ts';
import type { IndexState, RecordLocation } from '../index-state.ts';
import type {
  Asker,
  CommitWork,
  IndexReader,
  IndexStatistics,
  IndexWriter,
  OpenIndex,
  SearchPlans,
} from './contract.ts';
import type { BlobStore } from './storage/blob-store.ts';
import type { CopyPace } from './segments/copy-pace.ts';
import { alone } from './alone.ts';
import { fromEngine, unreadRecord } from './engine/engine-errors.ts';
import type { IndexSettings } from './index-settings.ts';
import type { NativeEngine, NativeIndex, NativeMatching, NativeRecord } from './engine/native.ts';
import { PublishQueue, type BornVersion, type Commit } from './publishing/publish-queue.ts';
import { Scrub, type Verification } from './segments/scrub.ts';
import type { SegmentCatalog } from './segments/segment-catalog.ts';
import { SegmentUpkeep } from './segments/segment-upkeep.ts';
import { SegmentWriter } from './segments/segment-writer.ts';
import type { Segment } from './segments/segment.ts';
import { ValueLoader } from './segments/value-loader.ts';
import { SharedLock } from './publishing/shared-lock.ts';
import { SnapshotPins } from './publishing/snapshot-pins.ts';

export interface LocalIndexEvents {
  /** A job in the background failed; it is tried again at the next occasion. */
  readonly onBackgroundError: (indexId: string, job: string, error: unknown) => void;
  /** Something that is referenced is damaged, and was found so twice. */
  readonly onCorrupt: (indexId: string, error: unknown) => void;
}

export interface LocalIndexDeps {
  readonly indexId: string;
  readonly dim: number;
  readonly native: NativeIndex;
  readonly blobs: BlobStore;
  readonly catalog: SegmentCatalog;
  readonly segments: Map<number, Segment>;
  readonly generation: number;
  readonly settings: IndexSettings;
  /** The pace of the merges of all indexes together. */
  readonly pace: CopyPace;
  readonly engine: Pick<NativeEngine, 'inspectSegment' | 'inspectCodes' | 'inspectPostings'>;
  readonly verification: Verification;
  readonly plans: SearchPlans;
  readonly events: LocalIndexEvents;
}

export class LocalIndex implements OpenIndex {
  readonly #deps: LocalIndexDeps;
  readonly #writer: SegmentWriter;
  readonly #queue: PublishQueue;
  readonly #pins = new SnapshotPins();
  /** Commits share it; the end of a merge takes it alone, so that none is between its transaction and memory. */
  readonly #commits = new SharedLock();
  readonly #upkeep: SegmentUpkeep;
  readonly #scrub: Scrub;
  readonly #values: ValueLoader;
  /** Merges that have moved records. */
  #swaps = 0;
  #forgotten = 0;
  #maintenance: Promise<void> | undefined;
  #failure: unknown;
  #closed = false;

  constructor(deps: LocalIndexDeps) {
    this.#deps = deps;
    this.#queue = new PublishQueue(deps.generation, (commit) => this.#publish(commit));
    this.#writer = new SegmentWriter({
      indexId: deps.indexId,
      native: deps.native,
      blobs: deps.blobs,
      catalog: deps.catalog,
      segments: deps.segments,
      settings: deps.settings,
      onRetired: (segment) => this.#upkeep.seal(segment),
    });
    this.#upkeep = new SegmentUpkeep({
      ...deps,
      writer: this.#writer,
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
      bytesPerSecond: deps.settings.verifyBytesPerSecond,
      ageMsMax: deps.settings.verifyAgeMsMax,
      nowMs: deps.settings.nowMs,
      pinnedGeneration: () => this.#pins.oldest(this.#queue.published),
      onCorrupt: (error) => deps.events.onCorrupt(deps.indexId, error),
      onDamagedCodes: (segment) => this.#upkeep.derive(segment),
      onDamagedPostings: (segment) => this.#upkeep.derivePostings(segment),
      onError: (error) => this.#noteBackgroundError('verification', error),
    });
    const { native, catalog } = deps;
    this.#values = new ValueLoader({
      native,
      readMetadata: (versionIds) => catalog.readMetadata(versionIds),
    });
    this.#resumeSegments();
  }

  /** Resolves when every sealed segment has been compared with its checksums not long ago. */
  verified(): Promise<void> {
    return this.#scrub.run();
  }

  /** The dimension of its token vectors. */
  get dim(): number {
    return this.#deps.dim;
  }

  /** False after a failure that only opening anew can mend. */
  get usable(): boolean {
    return this.#failure === undefined && !this.#closed;
  }

  /** Background work is going on. */
  get busy(): boolean {
    return this.#upkeep.busy || this.#maintenance !== undefined;
  }

  /** Runs an upsert; records that `work` leaves uncommitted are waste. */
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
            // Its segments are in the catalog since they were made.
            const input = upsert({ locations: born, segments: [] });
            const result = await this.#deps.catalog.commitUpsert(input);
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

  /** Runs a transaction that only ends versions (a delete) and publishes it. */
  commitDelete<T>(transaction: () => Promise<CommitWork<T>>): Promise<T> {
    return this.#commit([], transaction);
  }

  /** The record that the catalog has found there; `undefined` where a merge has taken it elsewhere since. */
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

  /** Publishes a generation that was committed elsewhere, and all before it, from the catalog. */
  async catchUp(generation: number): Promise<void> {
    // Commits of later generations wait for this one, and a merge that waits for them must not keep it out.
    await this.#commits.sharedFirst(async () => {
      if (generation > this.#queue.published) await this.#catchUpLocked();
    });
  }

  /** Runs `work` on a snapshot; what it refers to stays resolvable until `work` settles. */
  async read<T>(work: (reader: IndexReader) => Promise<T>): Promise<T> {
    const generation = this.#queue.published;
    this.#pins.pin(generation);
    try {
      return await work({
        search: async (search, asker = alone) => {
          const found = await this.#ask({ ...search, generation }, asker, (asked) =>
            this.#deps.native.search(asked),
          );
          if (found.codesLost) this.#upkeep.mendDerived();
          this.#deps.plans[found.plan] += 1;
          return found;
        },
        matching: (matching, asker = alone) =>
          this.#ask({ ...matching, generation }, asker, (asked) => this.#deps.native.matching(asked)),
        statistics: async () => this.statistics(),
      });
    } finally {
      this.#pins.unpin(generation);
    }
  }

  /** Forgets dead versions, seals what waits for it, reclaims space; one run at a time, never rejects. */
  maintain(): Promise<void> {
    this.#maintenance ??= this.#maintain()
      .catch((error: unknown) => this.#noteBackgroundError('maintenance', error))
      .finally(() => {
        this.#maintenance = undefined;
      });
    return this.#maintenance;
  }

  /** As `maintain`, and then everything is merged into one segment. */
  async mergeAll(): Promise<void> {
    for (const segment of this.#deps.segments.values()) this.#writer.retire(segment);
    await this.maintain();
    await this.#upkeep.mergeAll();
  }

  statistics(): IndexStatistics {
    const segments = this.#deps.native.segments();
    return { segments, recordsLive: segments.reduce((sum, { recordsLive }) => sum + recordsLive, 0) };
  }

  /** Gives up background work, which the next open takes up again; reads and writes go on. Idempotent. */
  windDown(): void {
    this.#upkeep.close();
    this.#scrub.stop();
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.windDown();
    this.#queue.fail(unavailable());
    this.#deps.native.close();
  }

  /** Resolves when no background job runs; only then may a closed index be opened again. */
  settled(): Promise<void> {
    return this.#upkeep.settled();
  }

  /** Asks the engine, with the time that is left. */
  async #ask<Asked extends NativeMatching, T>(
    asked: Asked,
    { signal, inTurn }: Asker,
    ask: (asked: Asked) => Promise<T>,
  ): Promise<T> {
    const endsAt = performance.now() + asked.timeoutMs;
    const askNow = (): Promise<T> => ask({ ...asked, timeoutMs: Math.max(1, endsAt - performance.now()) });
    try {
      for (;;) {
        this.#assertUsable();
        const swaps = this.#swaps;
        const found = await this.#values.run({ ...asked, endsAt, signal }, () => inTurn(askNow));
        // While records move they can be met at both places; once they have moved, at one.
        if (swaps === this.#swaps) return found;
      }
    } catch (error) {
      this.#verifyUnread(error);
      throw fromEngine(error);
    }
  }

  #commit<T>(born: readonly BornVersion[], transaction: () => Promise<CommitWork<T>>): Promise<T> {
    return this.#commits.shared(async () => {
      this.#assertUsable();
      let committed: CommitWork<T>;
      try {
        committed = await transaction();
      } catch (error) {
        // Whether it committed is unknown: what the catalog says now decides what is visible.
        await this.#catchUpLocked();
        throw error;
      }
      if (committed.commit !== undefined) await this.#queue.submit({ ...committed.commit, born });
      return committed.result;
    });
  }

  async #catchUpLocked(): Promise<void> {
    try {
      const state = await this.#deps.catalog.loadState();
      await Promise.all(
        commitsBeyond(this.#queue.published, state).map((commit) => this.#queue.submit(commit)),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A commit that cannot be applied is in the catalog all the same: the index is opened anew from there. */
  #publish(commit: Commit): void {
    try {
      this.#apply(commit);
    } catch (error) {
      this.#noteBackgroundError('publishing', error);
      this.#fail(error);
      throw error;
    }
  }

  /** Makes one commit visible, here and in the engine, in one turn of the event loop. */
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
    // Goes on by itself, for as long as it takes.
    if (this.usable && !this.#upkeep.closed) void this.#scrub.run();
  }

  #resumeSegments(): void {
    const { segments } = this.#deps;
    const active = [...segments.values()].filter((segment) => segment.state === 'active');
    const newest = active.reduce<Segment | undefined>(
      (a, b) => (a === undefined || b.id > a.id ? b : a),
      undefined,
    );
    for (const segment of active) if (segment !== newest) this.#writer.retire(segment);
    if (newest !== undefined) this.#writer.resume(newest);
    this.#upkeep.resume();
  }

  #noteBackgroundError(job: string, error: unknown): void {
    // Jobs that closing cuts short fail by design.
    if (this.#closed) return;
    this.#verifyUnread(error);
    this.#deps.events.onBackgroundError(this.#deps.indexId, job, error);
  }

  /** Whoever needed the record fails; what that says of the index is for a second look to tell. */
  #verifyUnread(error: unknown): void {
    const unread = unreadRecord(error);
    if (unread !== undefined) void this.#scrub.verifyRecord(unread);
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#queue.fail(unavailable(error));
  }

  #assertUsable(): void {
    if (!this.usable) throw unavailable(this.#failure);
  }
}

/** Commits that a state holds beyond a generation, in order. */
function commitsBeyond(published: number, state: IndexState): Commit[] {
  const commits: { generation: number; born: BornVersion[]; died: RecordLocation[] }[] = [];
  for (let generation = published + 1; generation <= state.generation; generation += 1) {
    commits.push({ generation, born: [], died: [] });
  }
  const { segmentIds, records, versionIds, born, died } = state.versions;
  for (let row = 0; row < versionIds.length; row += 1) {
    const location = { segmentId: segmentIds[row] ?? 0, record: records[row] ?? 0 };
    commits[(born[row] ?? 0) - published - 1]?.born.push({ ...location, versionId: versionIds[row] ?? 0 });
    commits[(died[row] ?? 0) - published - 1]?.died.push(location);
  }
  return commits;
}

function columnsOf(locations: readonly RecordLocation[]) {
  return {
    segmentIds: Float64Array.from(locations, (location) => location.segmentId),
    records: Uint32Array.from(locations, (location) => location.record),
  };
}

function unavailable(cause?: unknown): ServiceError {
  return new ServiceError('service_unavailable', 'the index is being opened again', {
    retryAfterSeconds: 1,
    cause,
  });
}
