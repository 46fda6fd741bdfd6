/**
 * What several nodes ask of the catalog that they share, beyond what one process asks of its own (`contract.ts`).
 * It is the only truth about an index: which segments exist, what they hold, and which generation holds now.
 *
 * Segments are immutable when the catalog names them: a row is `uploading` from before the first object is put until a
 * commit or a merge names it, `sealed` from then on, and `replaced` once a merge has taken its records or its index
 * is gone. What is garbage is known from these rows alone; no store is ever listed.
 */
import type { IndexState } from '../index-state.ts';
import type { Catalog, CommitUpsertInput, CommitUpsertResult } from './contract.ts';

/** One object of a segment. Its key is the segment's blob followed by the ending; both never name anything else again. */
export interface SegmentFile {
  /** `''` for the segment itself, `.codes`, `.postings` or `.codebook`. */
  readonly ending: string;
  readonly bytes: number;
  /** SHA-256 of the object, 64 hexadecimal digits. */
  readonly sha256: string;
  /** The name that codes call their codebook by; of the codebook alone. */
  readonly name?: string;
}

/** A segment whose objects are all durable in the blob store. */
export interface NamedSegment {
  readonly id: number;
  readonly blob: string;
  readonly records: number;
  readonly files: readonly SegmentFile[];
}

/** What a search has to have seen before it runs. */
export interface IndexHead {
  /** Counts commits. */
  readonly generation: number;
  /** Counts merges: places of records may have changed without a new generation. */
  readonly layout: number;
}

/** An index at one moment, as far as it differs from what a node has. */
export interface IndexChanges extends IndexHead {
  /** All that are sealed now, by id. */
  readonly segments: readonly NamedSegment[];
  /** Every version, dead ones too, of the segments that the node does not have; ordered by segment and record. */
  readonly versions: IndexState['versions'];
  /** Versions of the other segments that died after the node's generation. */
  readonly died: {
    readonly segmentIds: Float64Array;
    readonly records: Uint32Array;
    /** Generations. */
    readonly died: Float64Array;
  };
}

export interface ChangesInput {
  readonly indexId: string;
  /** The node has every commit up to this one; -1 = none. */
  readonly generation: number;
  /** The segments that the node has. */
  readonly segmentIds: readonly number[];
}

export interface ClusterCommitUpsertInput extends CommitUpsertInput {
  /** Segments that this commit names first: `uploading` until now, or named by a commit of the same node just before. */
  readonly segments: readonly NamedSegment[];
  /** Input tokens of the month in `usage` that the tenant may use; decided in the same transaction. */
  readonly inputTokensMax: bigint;
}

/** The right to merge segments of an index, until it runs out or another node takes it. */
export interface MergeLease {
  readonly indexId: string;
  /** Grows with each holder: a node that slept past its lease cannot swap any more. */
  readonly fence: number;
}

export interface ClusterSwapInput {
  readonly lease: MergeLease;
  readonly removedSegmentIds: readonly number[];
  /** Absent when nothing that is removed is still needed. */
  readonly target?: NamedSegment;
  /** Every version that a reader may need still, from the removed segments to the target. */
  readonly moves: { readonly versionIds: Float64Array; readonly records: Uint32Array };
}

/** A process that serves. */
export interface ClusterNode {
  readonly id: string;
  /** For people: where it can be reached, or its host and process. */
  readonly name: string;
  readonly program: string;
  /** Numbers for people (`maxsimd cluster status`), as JSON. */
  readonly report: string;
}

export interface ClusterNodeRow extends ClusterNode {
  readonly startedAtMs: number;
  readonly seenMsAgo: number;
}

export interface GarbageBlob {
  readonly segmentId: number;
  readonly blob: string;
  readonly endings: readonly string[];
}

export interface ClusterCatalog extends Catalog {
  /** As it is at some moment after the call, never from a replica; `undefined` when the index is gone. Callers that come together share a query. */
  readHead(indexId: string): Promise<IndexHead | undefined>;
  /**
   * One moment of the index. `'reopen'`: the catalog has forgotten deaths that the node has not seen, which must
   * begin anew with generation -1 and no segments. `undefined` when the index is gone.
   */
  changesSince(input: ChangesInput): Promise<IndexChanges | 'reopen' | undefined>;
  /** `outcome: 'token_allowance_exceeded'`, as every other refusal, changes and charges nothing. */
  commitUpsert(input: ClusterCommitUpsertInput): Promise<CommitUpsertResult>;
  /**
   * As `Catalog.recordUsage`, durable when settled; writes of requests that come together share a transaction. With
   * `inputTokensMax`, rejects with `usage_limit_exceeded` and records nothing when the month would exceed it.
   */
  chargeUsage(event: Parameters<Catalog['recordUsage']>[0], inputTokensMax?: bigint): Promise<void>;

  /** `undefined` while another node has it. `ttlMs` by the clock of the database. A lease of the same node is renewed with its fence. */
  acquireMergeLease(indexId: string, nodeId: string, ttlMs: number): Promise<MergeLease | undefined>;
  /** False when the lease is lost. */
  renewMergeLease(lease: MergeLease, ttlMs: number): Promise<boolean>;
  releaseMergeLease(lease: MergeLease): Promise<void>;
  /** One transaction: versions move, removed segments are `replaced`, layout + 1. False, and nothing changed, when the lease is lost or the index is gone. */
  swapMerged(input: ClusterSwapInput): Promise<boolean>;

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
