/**
 * Merges of an index that nodes share. The node that has the turn puts the merged segment, with its derived data, into the object
 * store. Then one transaction of the catalog names it in place of its sources, and this node follows that change like every
 * other.
 */
import type { NamedSegment } from '../../contracts/index-state.ts';
import type { SharedIndexCatalog } from '../catalog.ts';
import { throughEngine } from '../engine/engine-errors.ts';
import type { IndexSettings } from '../index-settings.ts';
import type { Merge } from '../merging/merge.ts';
import type { MergeHost, MergeSource, MergeTarget } from '../merging/merge-host.ts';
import { liveTokenVectors, planMerge } from '../merging/merge-policy.ts';
import { createDelta, dropDelta, type DeltaDeps } from './deltas.ts';
import type { FollowedSegment, Follower } from './follower.ts';
import { putSegment } from './segment-objects.ts';

export interface SharedMergesDeps extends Omit<DeltaDeps, 'catalog'> {
  readonly catalog: SharedIndexCatalog;
  readonly follower: Follower;
  readonly settings: IndexSettings;
  /** Whether nodes of an earlier release live, which cannot read the codebooks of this one. */
  readonly earlierNodes?: (() => boolean) | undefined;
}

export class SharedMerges implements MergeHost {
  readonly #deps: SharedMergesDeps;

  constructor(deps: SharedMergesDeps) {
    this.#deps = deps;
  }

  segments(): ReadonlyMap<number, FollowedSegment> {
    return this.#deps.follower.segments;
  }

  pinnedGeneration(): number {
    return this.#deps.follower.generation;
  }

  async lookAround(): Promise<void> {
    const { catalog, follower } = this.#deps;
    await follower.reach(await catalog.readHead());
  }

  /** Nothing is due while segments are being fetched, because a merge and a codebook read all of them. */
  due(segments: readonly MergeSource[]): readonly number[] {
    const { settings, follower } = this.#deps;
    if (!follower.isWhole) return [];
    const plan = planMerge(segments, settings);
    if (plan !== undefined) return plan.segmentIds;
    // Segments without codes are scored exactly. They are merged as soon as the merged segment would get codes.
    const plain = segments.filter(({ centroids }) => centroids === 0);
    const tokenVectors = plain.reduce((sum, segment) => sum + liveTokenVectors(segment), 0);
    return tokenVectors < settings.codesTokenVectorsMin ? [] : plain.map(({ id }) => id);
  }

  /** The cache makes room by itself. */
  async assertSpace(): Promise<void> {}

  createTarget(): Promise<MergeTarget> {
    return createDelta(this.#deps);
  }

  finish(target: MergeTarget): Promise<NamedSegment> {
    const { native, settings, earlierNodes } = this.#deps;
    return throughEngine(async () => {
      const sealed = await native.seal(target.id);
      if (sealed.tokenVectors < settings.codesTokenVectorsMin) {
        return await putSegment(this.#deps, target, sealed);
      }
      await native.buildCodes(target.id, earlierNodes?.() ?? false);
      const built = native.segments().find(({ segmentId }) => segmentId === target.id);
      return await putSegment(this.#deps, target, built ?? sealed);
    });
  }

  async changeOver(_merge: Merge, swap: () => Promise<void>): Promise<void> {
    await swap();
    await this.lookAround();
  }

  /** Drops the target, unless the catalog names it by now. */
  async ended({ target }: Merge): Promise<void> {
    if (target !== undefined) await dropDelta(this.#deps, target);
  }
}
