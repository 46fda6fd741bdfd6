/**
 * The functions of the catalog that an index needs. This room does not know the catalog: the service binds the two. Every
 * write is durable when its promise settles. Every call rejects with `not_found` when the index is gone.
 */
import type { CommitUpsertInput, CommitUpsertResult } from '../contracts/document-commits.ts';
import type { IndexChanges, IndexHead, Moves, NamedSegment } from '../contracts/index-state.ts';
import { assertInvariant } from '../errors.ts';
import type { VersionMetadata } from './segments/value-loader.ts';

export interface MergedSegments {
  readonly removedSegmentIds: readonly number[];
  /** Absent when no record of the removed segments is still needed. */
  readonly target?: NamedSegment;
}

/** The right to merge. Where nodes share an index it ends when it runs out or another node takes it. */
export interface MergeTurn {
  /** Returns false when it is lost. */
  renew(): Promise<boolean>;
  /**
   * Notes where versions lie in the target. A version that was forgotten meanwhile is left out. In a catalog of one process
   * the places count at once. In a catalog that nodes share they count when `swap` names the target.
   */
  place(targetId: number, moves: Moves): Promise<void>;
  /** One transaction. Returns false and changes nothing when the turn is lost. */
  swap(merged: MergedSegments): Promise<boolean>;
  release(): Promise<void>;
}

export interface IndexCatalog {
  /**
   * The difference between one moment and an open index that has every commit up to `generation` (-1 = none) and these segments.
   * `'reopen'`: the catalog has forgotten deaths that the open index has not seen.
   */
  changesSince(open: {
    readonly generation: number;
    readonly segmentIds: readonly number[];
  }): Promise<IndexChanges | 'reopen'>;
  allocateSegmentId(): Promise<number>;
  /**
   * Where nodes share an index, this comes before an object is put. The catalog then knows objects that are put and never named
   * as garbage.
   */
  createSegment(segment: { readonly id: number; readonly blob: string }): Promise<void>;
  /**
   * Each upsert is decided alone. The results are in the order of the upserts. The transaction names the segments that the upserts
   * name for the first time.
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

/** Only this process writes to the index. It may commit to a segment that still takes records. */
export interface OwnIndexCatalog extends IndexCatalog {
  sealSegment(segmentId: number, records: number): Promise<void>;
}

/** Other nodes write to the index, too. */
export interface SharedIndexCatalog extends IndexCatalog {
  /** The head at some moment after the call. */
  readHead(): Promise<IndexHead>;
}

export async function commitUpsert(
  catalog: Pick<IndexCatalog, 'commitUpserts'>,
  upsert: CommitUpsertInput,
): Promise<CommitUpsertResult> {
  const [result] = await catalog.commitUpserts([upsert]);
  assertInvariant(result !== undefined, 'one upsert has one result');
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}
