/** The merges of an open index, one at a time. Where nodes share the index, one of them has the turn to merge it. */
import { SharedRuns } from '../../shared-runs.ts';
import type { IndexCatalog } from '../catalog.ts';
import { Merge, type MergeDeps } from './merge.ts';
import type { MergeSource } from './merge-host.ts';
import { liveTokenVectors } from './merge-policy.ts';
import { HeldTurn } from './merge-turn.ts';

export interface MergesDeps extends Omit<MergeDeps, 'isClosed'> {
  readonly catalog: Pick<IndexCatalog, 'beginMerge'>;
  readonly onError: (job: string, error: unknown) => void;
}

export class Merges {
  readonly #deps: MergeDeps & MergesDeps;
  readonly #running = new SharedRuns();
  #latest: Merge | undefined;
  #closed = false;

  constructor(deps: MergesDeps) {
    this.#deps = { ...deps, isClosed: () => this.#closed };
  }

  get busy(): boolean {
    return this.#running.busy;
  }

  /** The merge that runs now, or that has failed. */
  get unfinished(): Merge | undefined {
    return this.#latest;
  }

  /** Merges until nothing is due, unless another node does. Callers share a run. Never rejects. */
  run(): Promise<void> {
    return this.#runFrom(() => this.#due());
  }

  /** Merges everything into one segment, whatever the policy says, then what is due. */
  runAll(): Promise<void> {
    return this.#runFrom(() => this.#all());
  }

  /** Idempotent. A running merge gives up at its next step. The next open takes it up again. */
  close(): void {
    this.#closed = true;
  }

  settled(): Promise<void> {
    return this.#running.settled();
  }

  #runFrom(first: () => readonly MergeSource[]): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return this.#running.run(() =>
      this.#mergeFrom(first).catch((error: unknown) => {
        // Closing makes a running merge fail: that is no error.
        if (!this.#closed) this.#deps.onError('merge', error);
      }),
    );
  }

  async #mergeFrom(first: () => readonly MergeSource[]): Promise<void> {
    const { catalog, host } = this.#deps;
    if (first().length === 0) return;
    const turn = await catalog.beginMerge();
    if (turn === undefined) return;
    const held = new HeldTurn(turn);
    try {
      await host.lookAround();
      for (let sources = first(); sources.length > 0 && !this.#closed; sources = this.#due()) {
        await this.#merge(held, sources);
      }
    } finally {
      await held.end();
    }
  }

  async #merge(held: HeldTurn, sources: readonly MergeSource[]): Promise<void> {
    await this.#deps.host.assertSpace(bytesOf(sources));
    const sourceIds = sources.map(({ id }) => id);
    this.#latest = new Merge(this.#deps, held, sourceIds);
    await this.#latest.run();
    this.#latest = undefined;
  }

  #due(): readonly MergeSource[] {
    const segments = this.#mergeable();
    const chosen = new Set(this.#deps.host.due(segments));
    return segments.filter(({ id }) => chosen.has(id));
  }

  #all(): readonly MergeSource[] {
    const segments = this.#mergeable();
    const isCompact = segments.every(({ records, live }) => records === live);
    return segments.length === 1 && isCompact ? [] : segments;
  }

  #mergeable(): readonly MergeSource[] {
    const { native, host } = this.#deps;
    const segments = host.segments();
    const pinned = host.pinnedGeneration();
    return native.segments().flatMap((info) => {
      const segment = segments.get(info.segmentId);
      if (segment === undefined) return [];
      return {
        id: info.segmentId,
        records: info.records,
        live: native.recordsSeenSince(info.segmentId, pinned).records.length,
        tokenVectors: info.tokenVectors,
        fileBytes: info.fileBytes,
        derivedBytes: info.derivedBytes,
        centroids: info.centroids,
        wasteSinceMs: segment.wasteSinceMs,
        unwritable: segment.unwritable ?? false,
      };
    });
  }
}

/** How many bytes a merge of these segments writes: records and derived data. */
function bytesOf(sources: readonly MergeSource[]): number {
  return sources.reduce(
    (bytes, segment) =>
      bytes +
      ((segment.fileBytes + segment.derivedBytes) * liveTokenVectors(segment)) /
        Math.max(1, segment.tokenVectors),
    0,
  );
}
