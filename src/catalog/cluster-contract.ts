/**
 * What several nodes ask of the catalog that they share, beyond what one process asks of its own (`contract.ts`).
 * It is the only truth about an index: which segments exist, what they hold, and which generation holds now.
 *
 * Segments are immutable when the catalog names them: a row is `uploading` from before the first object is put until a
 * commit or a merge names it, `sealed` from then on, and `replaced` once a merge has taken its records or its index
 * is gone. What is garbage is known from these rows alone; no store is ever listed.
 *
 * Commits and usage are what `Catalog` says of a catalog that several processes share.
 */
import type { IndexChanges, IndexHead, NamedSegment } from '../index-state.ts';
import type { CommitUpsertInput, CommitUpsertResult } from '../document-commits.ts';
import type { Catalog } from './contract.ts';

export interface ChangesInput {
  readonly indexId: string;
  /** The node has every commit up to this one; -1 = none. */
  readonly generation: number;
  /** The segments that the node has. */
  readonly segmentIds: readonly number[];
}

/** The right to merge segments of an index, until it runs out or another node takes it. */
export interface MergeLease {
  readonly indexId: string;
  /** Grows with each holder: a node that slept past its lease cannot swap any more. */
  readonly fence: number;
  /** As of the time when it was acquired. */
  readonly epoch: string;
}

export interface ClusterSwapInput {
  readonly lease: MergeLease;
  readonly removedSegmentIds: readonly number[];
  /** Absent when nothing that is removed is still needed. */
  readonly target?: NamedSegment;
  /** Every version that a reader may need still, from the removed segments to the target. */
  readonly moves: { readonly versionIds: Float64Array; readonly records: Uint32Array };
}

/** Five heartbeats missed: nobody counts the node any more. */
export const nodeLiveMs = 10_000;

/** A process that serves. */
export interface ClusterNode {
  readonly id: string;
  /** For people: where it can be reached, or its host and process. */
  readonly name: string;
  /** Numbers for people (`maxsimd cluster status`), as JSON. */
  readonly report: string;
}

export interface ClusterNodeRow extends ClusterNode {
  readonly startedAtMs: number;
  readonly seenMsAgo: number;
}

/** An index that a node has taken up to sweep. */
export interface SweptIndex {
  readonly indexId: string;
  /** There are deaths at or before this generation, which the sweep before had met: they may be forgotten. */
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
   * Calls `onOther` when this process learns that the catalog has begun another epoch: it was started again, and may have
   * lost commits that were answered. Identifiers are never given again, but generations are.
   */
  watchEpoch(onOther: () => void): void;
  /** One transaction of upserts into one index, in which each is decided alone; results in the order of the upserts. */
  commitUpserts(
    upserts: readonly CommitUpsertInput[],
  ): Promise<readonly PromiseSettledResult<CommitUpsertResult>[]>;
  /** As it is at some moment after the call, never from a replica; `undefined` when the index is gone. Callers that come together share a query. */
  readHead(indexId: string): Promise<IndexHead | undefined>;
  /**
   * One moment of the index. `'reopen'`: the catalog has forgotten deaths that the node has not seen, which must
   * begin anew with generation -1 and no segments. `undefined` when the index is gone.
   */
  changesSince(input: ChangesInput): Promise<IndexChanges | 'reopen' | undefined>;

  /** `undefined` while another node has it. `ttlMs` by the clock of the database. A lease of the same node is renewed with its fence. */
  acquireMergeLease(indexId: string, nodeId: string, ttlMs: number): Promise<MergeLease | undefined>;
  /** False when the lease is lost. */
  renewMergeLease(lease: MergeLease, ttlMs: number): Promise<boolean>;
  releaseMergeLease(lease: MergeLease): Promise<void>;
  /** One transaction: versions move, removed segments are `replaced`, layout + 1. False, and nothing changed, when the lease or its epoch is lost or the index is gone. */
  swapMerged(input: ClusterSwapInput): Promise<boolean>;

  /**
   * Takes up indexes whose last sweep was so long ago: no other node does before they are due again.
   */
  claimSweep(input: { readonly ageMs: number; readonly limit: number }): Promise<readonly SweptIndex[]>;

  /** Rows of objects that nobody needs: `uploading` for longer than a day, or `replaced` for longer than `keptMs`; some at a time, none twice at the same time. */
  collectGarbage(input: { readonly keptMs: number; readonly limit: number }): Promise<readonly GarbageBlob[]>;
  /** Their objects are gone: the rows go too. */
  forgetGarbage(segmentIds: readonly number[]): Promise<void>;

  /** Notes that a node lives; returns how many do (seen within `liveMs`), itself included. */
  heartbeat(node: ClusterNode, liveMs: number): Promise<number>;
  /** A node that ends says so. */
  leave(nodeId: string): Promise<void>;
  listNodes(): Promise<readonly ClusterNodeRow[]>;
}
