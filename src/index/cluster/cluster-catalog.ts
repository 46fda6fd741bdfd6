/**
 * The functions of the catalog that an index needs which nodes share. This room does not know the catalog: the service binds
 * the two. Every write is durable when its promise settles.
 */
import type { CommitUpsertInput, CommitUpsertResult } from '../../contracts/document-commits.ts';
import type { IndexChanges, IndexHead, NamedSegment } from '../../contracts/index-state.ts';
import type { VersionMetadata } from '../segments/value-loader.ts';

export interface MergedSegments {
  readonly removedSegmentIds: readonly number[];
  /** Absent when no record of the removed segments is still needed. */
  readonly target?: NamedSegment;
  /** The versions that a reader may still need, and their records in the target. */
  readonly moves: { readonly versionIds: Float64Array; readonly records: Uint32Array };
}

/** The right to merge, which ends when it runs out or another node takes it. */
export interface MergeTurn {
  /** Returns false when it is lost. */
  renew(): Promise<boolean>;
  /** One transaction. Returns false and changes nothing when the turn is lost. */
  swap(merged: MergedSegments): Promise<boolean>;
  release(): Promise<void>;
}

/** Every call rejects with `not_found` when the index is gone. */
export interface ClusterIndexCatalog {
  /** The head at some moment after the call. */
  readHead(): Promise<IndexHead>;
  /**
   * The difference between one moment and a node that has every commit up to `generation` (-1 = none) and these segments.
   * `'reopen'`: the catalog has forgotten deaths that the node has not seen.
   */
  changesSince(node: {
    readonly generation: number;
    readonly segmentIds: readonly number[];
  }): Promise<IndexChanges | 'reopen'>;
  allocateSegmentId(): Promise<number>;
  /** To be called before an object is put: the catalog then knows objects that are put and never named as garbage. */
  createSegment(segment: { readonly id: number; readonly blob: string }): Promise<void>;
  /**
   * One transaction, in which each upsert is decided alone. The results are in the order of the upserts. The transaction
   * names the segments that the upserts name for the first time.
   */
  commitUpserts(
    upserts: readonly CommitUpsertInput[],
  ): Promise<readonly PromiseSettledResult<CommitUpsertResult>[]>;
  readMetadata(versionIds: readonly number[]): Promise<VersionMetadata>;
  /** Forgets versions that died at or before a generation. */
  forgetDeadVersions(generation: number): Promise<number>;
  /** `undefined` while another node has the turn. */
  beginMerge(): Promise<MergeTurn | undefined>;
}
