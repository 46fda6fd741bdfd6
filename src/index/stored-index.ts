/**
 * One open index: appends documents, makes commits visible in order, searches snapshots, and keeps its
 * segments in shape in the background (sealing, graphs, compaction).
 *
 * Order of an upsert: append -> sync -> the caller's commit -> publish. The ledger (the catalog) decides what
 * exists; a record no commit refers to is waste. A search pins the last published generation and sees the
 * versions born at or before it and not yet dead at it, until the caller has read what belongs to them.
 */
import { ServiceError } from '../errors.ts';
import type { BlobStore } from './blob-store.ts';
import { compact, retireWastefulActive, type CompactionParts } from './compaction.ts';
import { fromEngine, hasEngineCode } from './engine-errors.ts';
import type { NativeIndex, NativeRecord, NativeSearch, NativeSearchResult, SegmentInfo } from './native.ts';
import { PublishQueue, type BornVersion, type Commit, type RecordLocation } from './publish-queue.ts';
import type { SegmentLedger, StoredState } from './segment-ledger.ts';
import { SegmentWriter } from './segment-writer.ts';
import type { Segment } from './segment.ts';
import { SharedLock } from './shared-lock.ts';
import { SnapshotPins } from './snapshot-pins.ts';

export interface StoredIndexSettings {
  /** Token vectors at which a segment is full. */
  readonly segmentTokenVectorsMax: number;
  /** Token vectors from which a sealed segment gets a candidate graph. */
  readonly graphTokenVectorsMin: number;
  /** Deleted data is rewritten away at this age. */
  readonly wasteAgeMsMax: number;
  readonly nowMs: () => number;
}

export interface StoredIndexEvents {
  /** A job in the background failed; it is tried again at the next occasion. */
  readonly onBackgroundError: (indexId: string, job: string, error: unknown) => void;
  /** A referenced record is damaged. */
  readonly onCorrupt: (indexId: string, error: unknown) => void;
}

export interface StoredIndexParts {
  readonly indexId: string;
  readonly native: NativeIndex;
  readonly blobs: BlobStore;
  readonly ledger: SegmentLedger;
  readonly segments: Map<number, Segment>;
  readonly generation: number;
  readonly settings: StoredIndexSettings;
  readonly events: StoredIndexEvents;
}

/** Records of one upsert, written document by document. */
export interface IndexWriter {
  append(record: NativeRecord): Promise<BornVersion>;
  /**
   * Makes the records durable, runs `work` (the transaction that refers to them) and publishes what it
   * committed. `undefined` from `work` = nothing was committed.
   */
  commit<T>(work: () => Promise<CommitWork<T>>): Promise<T>;
}

export interface CommitWork<T> {
  readonly result: T;
  /** Absent when the transaction changed nothing. */
  readonly commit?: { readonly generation: number; readonly died: readonly RecordLocation[] };
}

export interface IndexReader {
  search(search: Omit<NativeSearch, 'generation'>): Promise<NativeSearchResult>;
}

export interface StoredIndexStatistics {
  readonly segments: readonly SegmentInfo[];
  readonly recordsLive: number;
}

export class StoredIndex {
  readonly #parts: StoredIndexParts;
  readonly #writer: SegmentWriter;
  readonly #queue: PublishQueue;
  readonly #pins = new SnapshotPins();
  /** Commits share it; the swap of a compaction takes it alone, so that no commit names a moved record. */
  readonly #commits = new SharedLock();
  readonly #jobs = new Set<Promise<void>>();
  /** Compactions that have moved records. */
  #swaps = 0;
  #forgotten = 0;
  #maintenance: Promise<void> | undefined;
  #failure: unknown;
  #closed = false;

  constructor(parts: StoredIndexParts) {
    this.#parts = parts;
    this.#queue = new PublishQueue(parts.generation, (commit) => this.#apply(commit));
    this.#writer = new SegmentWriter({
      indexId: parts.indexId,
      native: parts.native,
      blobs: parts.blobs,
      ledger: parts.ledger,
      segments: parts.segments,
      tokenVectorsMax: parts.settings.segmentTokenVectorsMax,
      nowMs: parts.settings.nowMs,
      onRetired: (segment) => this.#sealInBackground(segment),
    });
    this.#resumeSegments();
  }

  /** False after a failure that only opening anew can mend. */
  get usable(): boolean {
    return this.#failure === undefined && !this.#closed;
  }

  /** Background work is going on. */
  get busy(): boolean {
    return this.#jobs.size > 0 || this.#maintenance !== undefined;
  }

  /** Runs an upsert; records that `work` leaves uncommitted are waste. */
  async write<T>(work: (writer: IndexWriter) => Promise<T>): Promise<T> {
    const session = this.#writer.begin();
    const born: BornVersion[] = [];
    try {
      return await work({
        append: async (record) => {
          this.#assertUsable();
          const location = await session.append(record);
          const version = { ...location, versionId: record.versionId };
          born.push(version);
          return version;
        },
        commit: async (transaction) => {
          await session.sync();
          return await this.#commit(born, async () => {
            const committed = await transaction();
            if (committed.commit !== undefined) session.committed();
            return committed;
          });
        },
      });
    } finally {
      session.end();
    }
  }

  /** Runs a transaction that only ends versions (a delete) and publishes it. */
  end<T>(transaction: () => Promise<CommitWork<T>>): Promise<T> {
    return this.#commit([], transaction);
  }

  /** Publishes a generation that was committed elsewhere, and all before it, from the ledger. */
  async catchUp(generation: number): Promise<void> {
    await this.#commits.shared(async () => {
      if (generation > this.#queue.published) await this.#catchUpLocked();
    });
  }

  /** Runs `work` on a snapshot; what it refers to stays resolvable until `work` settles. */
  async read<T>(work: (reader: IndexReader) => Promise<T>): Promise<T> {
    const generation = this.#queue.published;
    this.#pins.pin(generation);
    try {
      return await work({
        search: (search) => this.#search({ ...search, generation }),
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

  statistics(): StoredIndexStatistics {
    let recordsLive = 0;
    for (const segment of this.#parts.segments.values()) recordsLive += segment.lives.live;
    return { segments: this.#parts.native.segments(), recordsLive };
  }

  /** Idempotent. Background work that is cut short is taken up again at the next open. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.fail(unavailable());
    this.#parts.native.close();
  }

  /** Resolves when no background job runs. */
  async settled(): Promise<void> {
    while (this.#jobs.size > 0) await Promise.allSettled(this.#jobs);
  }

  async #search(search: NativeSearch): Promise<NativeSearchResult> {
    for (;;) {
      this.#assertUsable();
      const swaps = this.#swaps;
      try {
        const found = await this.#parts.native.search(search);
        // While records move they can be met at both places; once they have moved, at one.
        if (swaps === this.#swaps) return found;
      } catch (error) {
        this.#noteCorruption(error);
        throw fromEngine(error);
      }
    }
  }

  #commit<T>(born: readonly BornVersion[], transaction: () => Promise<CommitWork<T>>): Promise<T> {
    return this.#commits.shared(async () => {
      this.#assertUsable();
      let committed: CommitWork<T>;
      try {
        committed = await transaction();
      } catch (error) {
        // Whether it committed is unknown: what the ledger says now decides what is visible.
        await this.#catchUpLocked();
        throw error;
      }
      if (committed.commit !== undefined) await this.#queue.submit({ ...committed.commit, born });
      return committed.result;
    });
  }

  async #catchUpLocked(): Promise<void> {
    try {
      const state = await this.#parts.ledger.loadState();
      await Promise.all(
        commitsBeyond(this.#queue.published, state).map((commit) => this.#queue.submit(commit)),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Makes one commit visible, here and in the engine, in one turn of the event loop. */
  #apply(commit: Commit): void {
    const { native, segments, settings } = this.#parts;
    native.publish(commit.generation, columnsOf(commit.born), columnsOf(commit.died));
    for (const version of commit.born) {
      segments.get(version.segmentId)?.lives.add({ ...version, born: commit.generation, died: 0 });
    }
    for (const { segmentId, record } of commit.died) {
      segments.get(segmentId)?.lives.die(record, commit.generation, settings.nowMs());
    }
  }

  async #maintain(): Promise<void> {
    const forgettable = this.#pins.oldest(this.#queue.published);
    if (forgettable > this.#forgotten) {
      await this.#parts.ledger.forgetDeadVersions(forgettable);
      this.#forgotten = forgettable;
    }
    const compaction: CompactionParts = {
      ...this.#parts,
      writer: this.#writer,
      pinnedGeneration: () => this.#pins.oldest(this.#queue.published),
      exclusive: (work) => this.#commits.exclusive(work),
      onMoved: () => {
        this.#swaps += 1;
      },
    };
    retireWastefulActive(compaction);
    for (const segment of this.#parts.segments.values()) {
      if (segment.state === 'retired' && segment.writers === 0) this.#sealInBackground(segment);
    }
    await this.settled();
    if (!this.usable) return;
    const outcome = await compact(compaction);
    // A swap that may or may not have happened: only the ledger knows where the records lie now.
    if (outcome.uncertain !== undefined) this.#fail(outcome.uncertain);
  }

  #resumeSegments(): void {
    const { segments, native } = this.#parts;
    const active = [...segments.values()].filter((segment) => segment.state === 'active');
    const newest = active.reduce<Segment | undefined>(
      (a, b) => (a === undefined || b.id > a.id ? b : a),
      undefined,
    );
    for (const segment of active) {
      if (segment === newest) this.#writer.resume(segment);
      else this.#retireAtOpen(segment);
    }
    for (const info of native.segments()) {
      if (info.state === 'sealed' && !info.hasGraph) this.#buildGraphInBackground(info);
    }
  }

  #retireAtOpen(segment: Segment): void {
    segment.state = 'retired';
    this.#sealInBackground(segment);
  }

  #sealInBackground(segment: Segment): void {
    if (segment.poisoned || segment.sealing) return;
    segment.sealing = true;
    this.#inBackground('seal', async () => {
      try {
        const { native, blobs, ledger } = this.#parts;
        const info = await native.seal(segment.id);
        await blobs.seal(segment.blob);
        await ledger.sealSegment(segment.id, info.records);
        segment.state = 'sealed';
        this.#buildGraphInBackground(info);
      } catch (error) {
        // Without space it is tried again; after a failed write the file is done.
        if (hasEngineCode(error, 'io')) segment.poisoned = true;
        throw error;
      } finally {
        segment.sealing = false;
      }
    });
  }

  #buildGraphInBackground(info: SegmentInfo): void {
    if (info.tokenVectors < this.#parts.settings.graphTokenVectorsMin) return;
    this.#inBackground('graph', async () => {
      await this.#parts.native.buildGraph(info.segmentId);
    });
  }

  #inBackground(job: string, work: () => Promise<void>): void {
    if (this.#closed) return;
    const running = work()
      .catch((error: unknown) => this.#noteBackgroundError(job, error))
      .finally(() => this.#jobs.delete(running));
    this.#jobs.add(running);
  }

  #noteBackgroundError(job: string, error: unknown): void {
    // Jobs that closing cuts short fail by design.
    if (this.#closed) return;
    this.#noteCorruption(error);
    this.#parts.events.onBackgroundError(this.#parts.indexId, job, error);
  }

  #noteCorruption(error: unknown): void {
    if (hasEngineCode(error, 'corrupt')) this.#parts.events.onCorrupt(this.#parts.indexId, error);
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
function commitsBeyond(published: number, state: StoredState): Commit[] {
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
