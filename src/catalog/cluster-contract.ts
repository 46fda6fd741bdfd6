/**
 * The interface of a catalog that several nodes share. It has more than that of one process (`contract.ts`). The catalog is
 * the only truth about an index: which segments exist, what they hold, and which generation is the newest.
 *
 * The row of a segment has one of three states. It is `uploading` from before its first object is put until a commit or a
 * merge names the segment. It is `sealed` from then on, and the segment never changes again. It is `replaced` once a merge
 * has copied its records or its index is deleted. Garbage is found by these rows alone; the object store is never listed.
 */
import type { IndexChanges, IndexHead, Moves, NamedSegment } from '../contracts/index-state.ts';
import type { CommitUpsertInput, CommitUpsertResult } from '../contracts/document-commits.ts';
import type { Catalog } from './contract.ts';

export interface ChangesInput {
  readonly indexId: string;
  /** The node has every commit up to this one; -1 = it has none. */
  readonly generation: number;
  /** The segments that the node has. */
  readonly segmentIds: readonly number[];
}

/** The right to merge segments of an index, until it expires or another node takes it. */
export interface MergeLease {
  readonly indexId: string;
  /** Grows with each holder, so that a node whose lease has expired cannot swap any more. */
  readonly fence: number;
  /** The epoch in which it was acquired. */
  readonly epoch: string;
}

export interface ClusterSwapInput {
  readonly lease: MergeLease;
  readonly removedSegmentIds: readonly number[];
  /** Absent when no version of the removed segments is still needed. */
  readonly target?: NamedSegment;
}

/** A node that has missed five heartbeats is not counted any more. */
export const nodeLiveMs = 10_000;

/** A process that serves. */
export interface ClusterNode {
  readonly id: string;
  /** For people: its address, or its host and process. */
  readonly name: string;
  /** The models that it serves, and numbers for people (`maxsimd cluster status`), as JSON. */
  readonly report: string;
}

export interface ClusterNodeRow extends ClusterNode {
  readonly startedAtMs: number;
  readonly seenMsAgo: number;
}

/** An index that a node has claimed for a sweep. */
export interface SweptIndex {
  readonly indexId: string;
  readonly tenantId: string;
  /** Versions that died at or before this generation may be forgotten. The sweep before found the index at this generation. */
  readonly forgettable?: number;
  /** Its segments hold records of no live document. */
  readonly isWasteful: boolean;
}

export interface GarbageBlob {
  readonly segmentId: number;
  readonly blob: string;
}

export interface ClusterCatalog extends Catalog {
  /**
   * Calls `onOther` when this process learns that the catalog has begun another epoch. Then the server was started again and
   * may have lost commits that were answered. Identifiers are never given again, but generations are.
   */
  watchEpoch(onOther: () => void): void;
  /** Commits upserts into one index in one transaction. Each is decided alone. The results are in the order of the upserts. */
  commitUpserts(
    upserts: readonly CommitUpsertInput[],
  ): Promise<readonly PromiseSettledResult<CommitUpsertResult>[]>;
  /**
   * The head at some moment after the call, never from a replica; `undefined` when the index is gone. Calls at the same time
   * share a query.
   */
  readHead(indexId: string): Promise<IndexHead | undefined>;
  /**
   * The index at one moment. `'reopen'`: the catalog has forgotten deaths that the node has not seen. The node must ask again
   * with generation -1 and no segments. `undefined` when the index is gone.
   */
  changesSince(input: ChangesInput): Promise<IndexChanges | 'reopen' | undefined>;

  /**
   * `undefined` while another node has it. The database's clock decides when `ttlMs` are over. A node that holds the lease
   * renews it, with the same fence.
   */
  acquireMergeLease(indexId: string, nodeId: string, ttlMs: number): Promise<MergeLease | undefined>;
  /** False when the lease is lost. */
  renewMergeLease(lease: MergeLease, ttlMs: number): Promise<boolean>;
  releaseMergeLease(lease: MergeLease): Promise<void>;
  /** Notes where versions will lie in a segment that is not named yet. The places count once `swapMerged` names it. */
  placeVersions(segmentId: number, moves: Moves): Promise<void>;
  /**
   * In one transaction: names the target, marks the removed segments as `replaced`, and adds 1 to the layout. Every version of the
   * removed segments that a reader may still need was placed in the target before. Returns false, and changes nothing, when
   * the lease or its epoch is lost or the index is gone.
   */
  swapMerged(input: ClusterSwapInput): Promise<boolean>;

  /** Claims indexes whose last sweep was at least `ageMs` ago. No other node claims them before they are due again. */
  claimSweep(input: { readonly ageMs: number; readonly limit: number }): Promise<readonly SweptIndex[]>;

  /**
   * Claims segments that nobody needs: `uploading` for longer than a day, or `replaced` for longer than `keptMs`. No two nodes
   * get the same one at the same time.
   */
  collectGarbage(input: { readonly keptMs: number; readonly limit: number }): Promise<readonly GarbageBlob[]>;
  /** Deletes the rows of segments whose objects are deleted. */
  forgetGarbage(segmentIds: readonly number[]): Promise<void>;

  /** Notes that a node lives. Returns the reports of the others that were seen within `liveMs`. */
  heartbeat(node: ClusterNode, liveMs: number): Promise<readonly string[]>;
  /** Removes a node that ends. */
  leave(nodeId: string): Promise<void>;
  listNodes(): Promise<readonly ClusterNodeRow[]>;
}
