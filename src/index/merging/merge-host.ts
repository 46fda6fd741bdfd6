/** An index as its merges see it. A directory of one process and a store that nodes share answer in their own ways. */
import type { NamedSegment } from '../../contracts/index-state.ts';
import type { SegmentInfo } from '../engine/native.ts';
import type { Merge } from './merge.ts';
import type { MergeableSegment } from './merge-policy.ts';

/** A segment that a merge fills. */
export interface MergeTarget {
  readonly id: number;
  readonly blob: string;
}

/** A segment that may be merged, with the size of its derived data. */
export type MergeSource = MergeableSegment & Pick<SegmentInfo, 'derivedBytes' | 'centroids'>;

export interface MergeHost {
  /** The segments that may be merged now, by id. */
  segments(): ReadonlyMap<
    number,
    Pick<MergeableSegment, 'wasteSinceMs'> & Partial<Pick<MergeableSegment, 'unwritable'>>
  >;
  /** The oldest generation that a search here may still ask for. */
  pinnedGeneration(): number;
  /** Resolves when this process has what others have done. Called before sources are chosen. */
  lookAround(): Promise<void>;
  /** The ids of the segments to merge next; none when no merge is due. */
  due(segments: readonly MergeSource[]): readonly number[];
  /** Rejects when a merge that writes so many bytes would leave too little space. */
  assertSpace(bytes: number): Promise<void>;
  createTarget(): Promise<MergeTarget>;
  /** Makes the target durable, immutable and fast to search. */
  finish(target: MergeTarget): Promise<NamedSegment>;
  /** Calls `swap`, which makes the catalog name the target in place of the sources, and lets memory follow. */
  changeOver(merge: Merge, swap: () => Promise<void>): Promise<void>;
  /** The merge has ended. After `uncertain` nobody knows what the catalog holds; after `given up` it has not changed. */
  ended(merge: Merge, outcome: 'merged' | 'given up' | 'uncertain', error?: unknown): Promise<void>;
}
