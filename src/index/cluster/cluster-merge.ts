/**
 * Merges of an index that nodes share. One node at a time has the turn to merge. It writes the merged segment, builds its
 * derived data and puts it into the object store. Then one transaction of the catalog names it in place of its sources, and
 * this node follows that change like every other. A node that loses its turn before that changes nothing.
 */
import { SharedRuns } from '../../shared-runs.ts';
import { fromEngine } from '../engine/engine-errors.ts';
import type { SeenRecords, SegmentInfo } from '../engine/native.ts';
import type { IndexSettings } from '../index-settings.ts';
import type { CopyPace } from '../merging/copy-pace.ts';
import { copyRecords } from '../merging/copy-records.ts';
import { hasteOf, liveTokenVectors, planMerge, type MergeableSegment } from '../merging/merge-policy.ts';
import type { ClusterIndexCatalog, MergedSegments, MergeTurn } from './cluster-catalog.ts';
import { createDelta, dropDelta, type DeltaDeps } from './deltas.ts';
import type { Follower } from './follower.ts';
import { putSegment } from './segment-objects.ts';

export interface ClusterMergesDeps extends Omit<DeltaDeps, 'catalog'> {
  readonly catalog: ClusterIndexCatalog;
  readonly follower: Follower;
  readonly pace: CopyPace;
  readonly settings: IndexSettings;
  readonly onError: (job: string, error: unknown) => void;
}

/** How long a turn lasts. It is renewed three times within that. */
export const mergeTurnMs = 30_000;

export class ClusterMerges {
  readonly #deps: ClusterMergesDeps;
  readonly #running = new SharedRuns();
  #closed = false;

  constructor(deps: ClusterMergesDeps) {
    this.#deps = deps;
  }

  get busy(): boolean {
    return this.#running.busy;
  }

  /** Merges until nothing is due, unless another node does. Callers share a run. Never rejects. */
  run(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return this.#running.run(() =>
      this.#mergeAll().catch((error: unknown) => {
        // Closing makes a running merge fail: that is no error.
        if (!this.#closed) this.#deps.onError('merge', error);
      }),
    );
  }

  close(): void {
    this.#closed = true;
  }

  settled(): Promise<void> {
    return this.#running.settled();
  }

  async #mergeAll(): Promise<void> {
    const { catalog, follower } = this.#deps;
    if (this.#due().length === 0) return;
    const turn = await catalog.beginMerge();
    if (turn === undefined) return;
    const lease = new Renewal(turn);
    try {
      for (;;) {
        await follower.reach(await catalog.readHead());
        const sources = this.#due();
        if (sources.length === 0 || this.#closed) return;
        await this.#merge(lease, sources);
      }
    } finally {
      await lease.end();
    }
  }

  async #merge(lease: Renewal, sources: readonly MergeableSegment[]): Promise<void> {
    const { native, follower, pace } = this.#deps;
    const seen = sources.map(({ id }) => native.recordsSeenSince(id, follower.generation));
    const removedSegmentIds = sources.map(({ id }) => id);
    if (seen.every(({ records }) => records.length === 0)) {
      await this.#swap(lease, { removedSegmentIds, moves: movesOf([]) });
      return;
    }
    const target = await createDelta(this.#deps);
    try {
      let first = 0;
      for (const [place, { records }] of seen.entries()) {
        const from = removedSegmentIds[place] ?? 0;
        const assertOpen = (): void => this.#assertGoingOn(lease, from);
        assertOpen();
        await copyRecords(
          { native, pace, haste: () => hasteOf(follower.segments.size, this.#deps.settings), assertOpen },
          { from, records, to: target.id, first },
        );
        first += records.length;
      }
      const info = await this.#finish(target.id, lease);
      const named = await putSegment(this.#deps, target, info);
      await this.#swap(lease, { removedSegmentIds, target: named, moves: movesOf(seen) });
    } catch (error) {
      throw fromEngine(error);
    } finally {
      // This drops the target unless the catalog names it by now.
      await dropDelta(this.#deps, target);
    }
  }

  /** Makes the target immutable and fast to search. */
  async #finish(targetId: number, lease: Renewal): Promise<SegmentInfo> {
    const { native, settings } = this.#deps;
    const sealed = await native.seal(targetId);
    this.#assertGoingOn(lease);
    if (sealed.tokenVectors < settings.codesTokenVectorsMin) return sealed;
    await native.buildCodes(targetId);
    return native.segments().find(({ segmentId }) => segmentId === targetId) ?? sealed;
  }

  async #swap(lease: Renewal, merged: MergedSegments): Promise<void> {
    const { catalog, follower } = this.#deps;
    this.#assertGoingOn(lease);
    if (!(await lease.turn.swap(merged))) throw new Error('another node took the turn to merge');
    await follower.reach(await catalog.readHead());
  }

  /** The segments to merge next. None while segments are being fetched, because a merge and a codebook read all of them. */
  #due(): readonly MergeableSegment[] {
    const { settings, follower } = this.#deps;
    if (!follower.isWhole) return [];
    const segments = this.#mergeable();
    const plan = planMerge(segments, settings);
    if (plan !== undefined) return segments.filter(({ id }) => plan.segmentIds.includes(id));
    // Segments without codes are scored exactly. They are merged as soon as the merged segment would get codes.
    const plain = segments.filter(({ centroids }) => centroids === 0);
    const tokenVectors = plain.reduce((sum, segment) => sum + liveTokenVectors(segment), 0);
    return tokenVectors < settings.codesTokenVectorsMin ? [] : plain;
  }

  #mergeable(): readonly (MergeableSegment & Pick<SegmentInfo, 'centroids'>)[] {
    const { native, follower } = this.#deps;
    return native.segments().flatMap((info) => {
      const segment = follower.segments.get(info.segmentId);
      if (segment === undefined) return [];
      return {
        id: info.segmentId,
        records: info.records,
        live: native.recordsSeenSince(info.segmentId, follower.generation).records.length,
        tokenVectors: info.tokenVectors,
        fileBytes: info.fileBytes,
        centroids: info.centroids,
        wasteSinceMs: segment.wasteSinceMs,
        unwritable: false,
      };
    });
  }

  /** `source`: another node may have taken the turn and merged it away. This node may see that before it knows the turn lost. */
  #assertGoingOn(lease: Renewal, source?: number): void {
    if (this.#closed) throw new Error('the index is being closed');
    const isGone = source !== undefined && !this.#deps.follower.segments.has(source);
    if (lease.isLost || isGone) throw new Error('another node took the turn to merge');
  }
}

/** Renews a turn for as long as it is used. */
class Renewal {
  readonly turn: MergeTurn;
  readonly #timer: NodeJS.Timeout;
  #lost = false;

  constructor(turn: MergeTurn) {
    this.turn = turn;
    this.#timer = setInterval(() => void this.#renew(), mergeTurnMs / 3).unref();
  }

  get isLost(): boolean {
    return this.#lost;
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.#lost) await this.turn.release();
  }

  /** When the catalog cannot be asked the turn may still hold: the swap decides. */
  async #renew(): Promise<void> {
    const kept = await this.turn.renew().catch(() => true);
    if (kept) return;
    this.#lost = true;
    clearInterval(this.#timer);
  }
}

function movesOf(seen: readonly SeenRecords[]): MergedSegments['moves'] {
  const count = seen.reduce((sum, { versionIds }) => sum + versionIds.length, 0);
  const versionIds = new Float64Array(count);
  let first = 0;
  for (const source of seen) {
    versionIds.set(source.versionIds, first);
    first += source.versionIds.length;
  }
  return { versionIds, records: Uint32Array.from({ length: count }, (_value, record) => record) };
}
