/**
 * An index that nodes share, as one of them has it open. Every search first asks the catalog for the current generation, so
 * it sees every upsert that any node had answered before the search came.
 *
 * Opening loads nothing. A search that finds this node behind fetches what is missing. It waits no longer than it has time, and the
 * fetching goes on afterwards. Token vectors come last: a search that has chosen its candidates waits for theirs
 * alone.
 */
import type { RowShape } from '../../contracts/row-shape.ts';
import type { Repeats } from '../ask-again.ts';
import { alone, before, openingAgain } from '../asking.ts';
import type {
  Asker,
  CommitWork,
  IndexReader,
  IndexStatistics,
  IndexWriter,
  OpenIndex,
  SearchPlans,
} from '../contract.ts';
import { EngineAsks } from '../engine-asks.ts';
import { fromEngine, unreadRecord } from '../engine/engine-errors.ts';
import type { NativeMatching, NativeRecord, NativeSearch } from '../engine/native.ts';
import type { IndexHead, RecordLocation } from '../../contracts/index-state.ts';
import { SharedRuns } from '../../shared-runs.ts';
import type { IndexSettings } from '../index-settings.ts';
import type { CopyPace } from '../merging/copy-pace.ts';
import { IndexRecall, type BreadthMove, type RecallReport } from '../recall/index-recall.ts';
import type { Measuring } from '../recall/measuring.ts';
import { ValueLoader } from '../segments/value-loader.ts';
import type { SharedIndexCatalog } from '../catalog.ts';
import { slicedCount, slicedSearch, whole, type Sliced } from '../slices.ts';
import type { ClusterEvents } from './cluster-events.ts';
import { Merges } from '../merging/merges.ts';
import { SharedMerges, type SharedMergesDeps } from './shared-merges.ts';
import { dropDelta, StagedSegments, type Delta, type DeltaDeps } from './deltas.ts';
import { Follower } from './follower.ts';
import { UpsertGroups, type UpsertDeps } from './upsert-groups.ts';
import { UpsertSession } from './upsert-session.ts';

export interface ClusterIndexDeps
  extends Omit<DeltaDeps, 'catalog' | 'staged'>, Pick<SharedMergesDeps, 'earlierNodes'> {
  readonly shape: RowShape;
  readonly catalog: SharedIndexCatalog;
  readonly settings: IndexSettings;
  /** The pace of the merges of all indexes together. */
  readonly pace: CopyPace;
  readonly plans: SearchPlans;
  readonly repeats: Repeats;
  readonly measuring: Measuring;
  readonly events?: ClusterEvents;
  /** A job in the background failed. It is tried again with the next commit, search or round of upkeep. */
  readonly onBackgroundError: (indexId: string, job: string, error: unknown) => void;
  readonly onBreadth?: (indexId: string, move: BreadthMove) => void;
}

/** A node that is behind by less than this still learns of every death. One that is further behind opens the index again. */
const deathsKeptMs = 3_600_000;

export class ClusterIndex implements OpenIndex {
  readonly #deps: ClusterIndexDeps;
  readonly #follower: Follower;
  readonly #merges: Merges;
  readonly #upserts: UpsertDeps;
  readonly #groups: UpsertGroups;
  readonly #values: ValueLoader;
  readonly #asks: EngineAsks;
  readonly #recall: IndexRecall;
  /** The generations that this node had, and when; oldest first. */
  readonly #reached: { readonly atMs: number; readonly generation: number }[] = [];
  readonly #maintenance = new SharedRuns();
  readonly #jobs = new Set<Promise<void>>();
  /** Resolved when background work is given up. */
  readonly #ended = Promise.withResolvers<void>();
  #failure: unknown;
  #closed = false;

  constructor(deps: ClusterIndexDeps) {
    const staged = new StagedSegments();
    const onError = (job: string, error: unknown): void => this.#noteBackgroundError(job, error);
    this.#deps = deps;
    this.#upserts = {
      ...deps,
      staged,
      onEnd: (ended, isCommitted) =>
        this.#inBackground('catching up', () => this.#endDeltas(ended, isCommitted)),
    };
    this.#groups = new UpsertGroups(this.#upserts);
    this.#values = new ValueLoader({
      ...deps,
      columns: deps.cache,
      blobOf: (id) => this.#follower.segments.get(id)?.blob,
      onError: (error) => onError('columns', error),
    });
    this.#follower = new Follower({
      ...deps,
      staged,
      values: this.#values,
      onError: (error) => onError('cache', error),
    });
    this.#asks = new EngineAsks({
      ...deps,
      values: this.#values,
      parts: this.#follower,
      assertUsable: () => this.#assertUsable(),
      onFailed: (error) => this.#mend(error),
    });
    const host = new SharedMerges({ ...deps, staged, follower: this.#follower });
    this.#merges = new Merges({ ...deps, host, onError });
    this.#recall = new IndexRecall({
      measuring: deps.measuring,
      segments: () => deps.native.segments(),
      ask: (search) => deps.measuring.inTurns(() => slicedSearch(deps.native, search)),
      moves: () => this.#follower.swaps,
      onMove: (move) => deps.onBreadth?.(deps.indexId, move),
    });
  }

  get shape(): RowShape {
    return this.#deps.shape;
  }

  get usable(): boolean {
    return this.#failure === undefined && !this.#follower.lost && !this.#closed;
  }

  get recall(): RecallReport | undefined {
    return this.#recall.report;
  }

  get busy(): boolean {
    return this.#merges.busy || this.#jobs.size > 0 || this.#maintenance.busy;
  }

  async write<T>(work: (writer: IndexWriter) => Promise<T>): Promise<T> {
    const session = new UpsertSession(this.#upserts, this.#groups);
    try {
      return await work({
        append: async (record) => {
          this.#assertUsable();
          await session.append(record);
        },
        commit: (upsert) => session.commit(upsert),
      });
    } finally {
      session.end();
    }
  }

  /** The commit is durable, and the next search on every node sees it. So the answer does not wait for this node. */
  async commitDelete<T>(transaction: () => Promise<CommitWork<T>>): Promise<T> {
    const { result, commit } = await transaction();
    if (commit !== undefined) await this.catchUp();
    return result;
  }

  async readRecord(
    { segmentId, record }: RecordLocation,
    timeoutMs: number,
  ): Promise<NativeRecord | undefined> {
    const { segments } = this.#follower;
    const endsAt = performance.now() + timeoutMs;
    if (!segments.has(segmentId)) await this.#reachHeadBefore(endsAt);
    this.#assertUsable();
    try {
      return await this.#asks.read(endsAt, () => this.#deps.native.readRecord(segmentId, record));
    } catch (error) {
      if (!segments.has(segmentId)) return undefined;
      await this.#mend(error);
      throw fromEngine(error);
    }
  }

  /** Catches up in the background: every search looks for itself. */
  async catchUp(): Promise<void> {
    this.#inBackground('catching up', () => this.#catchUp());
  }

  read<T>(work: (reader: IndexReader) => Promise<T>, head?: Promise<IndexHead>): Promise<T> {
    const { native, plans } = this.#deps;
    return work({
      search: async (search, asker = alone) => {
        const wanted = { ...search, breadth: this.#recall.breadth };
        let generation = 0;
        const found = await this.#ask(wanted, head, asker, (asked) => {
          ({ generation } = asked);
          return slicedSearch(native, asked);
        });
        plans[found.plan] += 1;
        if (this.#recall.chooses(found.plan)) void this.#measure({ ...wanted, generation });
        void this.#follower.fetchRest();
        return found;
      },
      matching: (matching, asker = alone) =>
        this.#ask(matching, head, asker, (asked) => whole(() => native.matching(asked))),
      tokenVectors: (matching, asker = alone) =>
        this.#ask(matching, head, asker, (asked) => whole(() => native.tokenVectors(asked))),
      countSpans: (counting, asker = alone) =>
        this.#ask(counting, head, asker, (asked) => whole(() => native.countSpans(asked))),
      countValues: (counting, asker = alone) =>
        this.#ask(counting, head, asker, (asked) => slicedCount(native, asked)),
      findValue: (object, field, key) => native.findValue(object, field, key),
      statistics: async (timeoutMs) => {
        await this.#reachHeadBefore(performance.now() + timeoutMs, head);
        return this.statistics();
      },
    });
  }

  maintain(): Promise<void> {
    return this.#maintenance.run(() =>
      this.#maintain().catch((error: unknown) => this.#noteBackgroundError('maintenance', error)),
    );
  }

  statistics(): IndexStatistics {
    const segments = this.#deps.native.segments();
    return {
      indexId: this.#deps.indexId,
      recall: this.recall,
      segments,
      recordsLive: segments.reduce((sum, { recordsLive }) => sum + recordsLive, 0),
      followed: { indexId: this.#deps.indexId, generation: this.#follower.generation },
    };
  }

  windDown(): void {
    this.#ended.resolve();
    this.#recall.stop();
    this.#follower.stop();
    this.#merges.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.windDown();
    this.#deps.native.close();
  }

  async settled(): Promise<void> {
    await Promise.allSettled([this.#merges.settled(), this.#maintenance.settled(), ...this.#jobs]);
    await Promise.all([this.#follower.settled(), this.#values.settled()]);
  }

  /** Fetches early what searches would have to wait for, and merges before many segments gather. */
  async #catchUp(): Promise<void> {
    if (this.#closed) return;
    await this.#follower.reach(await this.#deps.catalog.readHead());
    void this.#merges.run();
  }

  /** Drops the deltas that no commit has named, and those that another node has merged away already. */
  async #endDeltas(deltas: readonly Delta[], isCommitted: boolean): Promise<void> {
    try {
      if (isCommitted) await this.#catchUp();
    } finally {
      for (const delta of deltas) await dropDelta(this.#upserts, delta);
    }
  }

  #inBackground(job: string, work: () => Promise<void>): void {
    const running = work()
      .catch((error: unknown) => this.#noteBackgroundError(job, error))
      .finally(() => this.#jobs.delete(running));
    this.#jobs.add(running);
  }

  /** Asks the engine about the current generation. */
  async #ask<Asked extends Omit<NativeMatching, 'generation'>, T>(
    asked: Asked,
    head: Promise<IndexHead> | undefined,
    asker: Asker,
    begin: (asked: Asked & { readonly generation: number }) => Sliced<T>,
  ): Promise<T> {
    const endsAt = performance.now() + asked.timeoutMs;
    await this.#reachHeadBefore(endsAt, head);
    const snapshot = () => ({ generation: this.#follower.generation, moves: this.#follower.swaps });
    return await this.#asks.ask(asked, { ...asker, endsAt, snapshot }, begin);
  }

  /** Does not fetch what this node lacks: it is not measured then. */
  async #measure(search: NativeSearch): Promise<void> {
    await this.#recall.measure(search).catch((error: unknown) => this.#noteBackgroundError('recall', error));
  }

  #reachHeadBefore(endsAt: number, asked?: Promise<IndexHead>): Promise<void> {
    return before(endsAt, this.#reachHead(asked), 'the index is being fetched');
  }

  async #reachHead(asked?: Promise<IndexHead>): Promise<void> {
    const head = await (asked ?? this.#deps.catalog.readHead());
    const { generation } = this.#follower;
    if (generation >= 0) this.#deps.events?.looked(Math.max(0, head.generation - generation));
    await this.#follower.reach(head).catch((error: unknown) => {
      throw fromEngine(error);
    });
  }

  /** Removes a local copy that cannot be read. The index is opened again without it, and nothing is lost. */
  async #mend(error: unknown): Promise<void> {
    const unread = unreadRecord(error);
    if (unread === undefined) return;
    const segment = this.#follower.segments.get(unread.segmentId);
    if (segment === undefined) return;
    this.#noteBackgroundError('cache', error);
    this.#failure ??= error;
    await this.#follower.removeCopy(unread.segmentId, segment);
  }

  async #maintain(): Promise<void> {
    await this.#reachHead();
    const { catalog, settings } = this.#deps;
    const nowMs = settings.nowMs();
    this.#reached.push({ atMs: nowMs, generation: this.#follower.generation });
    const old = this.#reached.findLastIndex(({ atMs }) => nowMs - atMs >= deathsKeptMs);
    const [forgettable] = this.#reached.splice(0, old + 1).slice(-1);
    if (forgettable !== undefined) await catalog.forgetDeadVersions(forgettable.generation);
    void this.#follower.verifyDerived();
    await Promise.race([this.#follower.fetchRest(), this.#ended.promise]);
    await this.#merges.run();
  }

  #noteBackgroundError(job: string, error: unknown): void {
    // Closing makes running jobs fail: that is no error.
    if (!this.#closed) this.#deps.onBackgroundError(this.#deps.indexId, job, error);
  }

  #assertUsable(): void {
    if (!this.usable) throw openingAgain(this.#failure);
  }
}
