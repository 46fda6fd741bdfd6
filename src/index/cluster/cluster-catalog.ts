/**
 * What an index that several nodes share needs from the keeper of the truth about it, as plain data and functions: the
 * service binds it to the catalog, which this layer does not know. Every write is durable when its promise settles.
 */
import type { CommitUpsertInput, CommitUpsertResult } from '../../document-commits.ts';
import type { IndexChanges, IndexHead, NamedSegment } from '../../index-state.ts';
import type { VersionMetadata } from '../segments/value-loader.ts';

export interface MergedSegments {
  readonly removedSegmentIds: readonly number[];
  /** Absent when nothing that is removed is still needed. */
  readonly target?: NamedSegment;
  /** Versions that a reader may need still, and their records in the target. */
  readonly moves: { readonly versionIds: Float64Array; readonly records: Uint32Array };
}

/** The right to merge, until it runs out or another node takes it. */
export interface MergeTurn {
  /** False when it is lost. */
  renew(): Promise<boolean>;
  /** One transaction; false, and nothing changed, when the turn is lost. */
  swap(merged: MergedSegments): Promise<boolean>;
  release(): Promise<void>;
}

/** Every call rejects with `not_found` when the index is gone. */
export interface ClusterIndexCatalog {
  /** As it is at some moment after the call. */
  readHead(): Promise<IndexHead>;
  /**
   * One moment, as far as it differs from a node that has every commit up to `generation` (-1 = none) and these segments.
   * `'reopen'`: deaths that the node has not seen are forgotten.
   */
  changesSince(node: {
    readonly generation: number;
    readonly segmentIds: readonly number[];
  }): Promise<IndexChanges | 'reopen'>;
  allocateSegmentId(): Promise<number>;
  /** Before the first object is put: what is put and never named is garbage that the catalog knows. */
  createSegment(segment: { readonly id: number; readonly blob: string }): Promise<void>;
  /**
   * One transaction, in which each upsert is decided alone; the results are in the order of the upserts. Segments that
   * they name first are named by it.
   */
  commitUpserts(
    upserts: readonly CommitUpsertInput[],
  ): Promise<readonly PromiseSettledResult<CommitUpsertResult>[]>;
  readMetadata(versionIds: readonly number[]): Promise<VersionMetadata>;
  /** Forgets versions that died at or before a generation. */
  forgetDeadVersions(generation: number): Promise<number>;
  /** `undefined` while another node has it. */
  beginMerge(): Promise<MergeTurn | undefined>;
}
