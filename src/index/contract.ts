/**
 * The index as the service uses it. It is kept in one process's own directory (`local-index.ts`), or in an
 * object store with a catalog that several nodes share (`cluster/cluster-index.ts`).
 */
import type { CommitUpsertInput, CommitUpsertResult } from '../document-commits.ts';
import type { IndexHead, NamedSegment, RecordLocation } from '../index-state.ts';
import type { Verification } from './segments/scrub.ts';
import type {
  NativeMatching,
  NativeRecord,
  NativeSearch,
  NativeSearchResult,
  SegmentInfo,
} from './engine/native.ts';

/** Counts the searches of all indexes by how their candidates were chosen. */
export type SearchPlans = Record<NativeSearchResult['plan'], number>;

/** Where the records of an upsert lie. */
export interface PlacedRecords {
  /** In the order of their appends. */
  readonly locations: readonly RecordLocation[];
  /** Those that the commit must name. */
  readonly segments: readonly NamedSegment[];
}

/** Records of one upsert, written document by document. */
export interface IndexWriter {
  /** The record is the index's from then on. */
  append(record: NativeRecord): Promise<void>;
  /**
   * Makes the records durable, asks `upsert` what is to be committed, commits it and publishes it. From the call of
   * `upsert` on it may have been committed, also when this rejects.
   */
  commit(upsert: (placed: PlacedRecords) => CommitUpsertInput): Promise<CommitUpsertResult>;
}

export interface CommitWork<T> {
  readonly result: T;
  /** Absent when the transaction changed nothing. */
  readonly commit?: { readonly generation: number; readonly died: readonly RecordLocation[] };
}

/** Who asks (absent: nobody else does), and how the engine's threads are divided among all that do. */
export interface Asker {
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Runs what takes the engine's threads when it is its turn. */
  readonly inTurn: <T>(task: () => Promise<T>) => Promise<T>;
}

export interface IndexReader {
  search(search: Omit<NativeSearch, 'generation'>, asker?: Asker): Promise<NativeSearchResult>;
  /** Ids of the versions that match, ascending. */
  matching(matching: Omit<NativeMatching, 'generation'>, asker?: Asker): Promise<Float64Array>;
  /** As they are once what others have committed is here; 503 when that takes longer. */
  statistics(timeoutMs: number): Promise<IndexStatistics>;
}

export interface IndexStatistics {
  readonly segments: readonly SegmentInfo[];
  readonly recordsLive: number;
  /** What this node has of an index that nodes share. */
  readonly followed?: FollowedIndex;
}

export interface FollowedIndex {
  readonly indexId: string;
  /** -1: nothing yet. */
  readonly generation: number;
}

/** An index that this process has open: a `LocalIndex` or a `ClusterIndex`. */
export interface OpenIndex {
  /** The dimension of its token vectors. */
  readonly dim: number;
  /** False after a failure that only opening anew can mend. */
  readonly usable: boolean;
  /** Background work is going on. */
  readonly busy: boolean;
  /** Runs an upsert; records that `work` leaves uncommitted are waste. */
  write<T>(work: (writer: IndexWriter) => Promise<T>): Promise<T>;
  /** Runs a transaction that only ends versions (a delete) and publishes it. */
  commitDelete<T>(transaction: () => Promise<CommitWork<T>>): Promise<T>;
  /**
   * The record that the catalog has found there, as it was appended; `undefined` where a merge has taken it elsewhere since.
   * `timeoutMs`: for what must be fetched first.
   */
  readRecord(at: RecordLocation, timeoutMs: number): Promise<NativeRecord | undefined>;
  /** Publishes a generation that was committed elsewhere, and all before it, from the catalog. */
  catchUp(generation: number): Promise<void>;
  /**
   * Runs `work` on a snapshot; what it refers to stays resolvable until `work` settles. `head`: what the catalog answers, asked
   * after the request came, where several processes write; absent = the index asks.
   */
  read<T>(work: (reader: IndexReader) => Promise<T>, head?: Promise<IndexHead>): Promise<T>;
  /** Forgets dead versions, reclaims space; one run at a time, never rejects. */
  maintain(): Promise<void>;
  statistics(): IndexStatistics;
  /** Gives up background work, which the next open takes up again; reads and writes go on. Idempotent. */
  windDown(): void;
  /** Idempotent. */
  close(): void;
  /** Resolves when no background job runs; only then may a closed index be opened again. */
  settled(): Promise<void>;
}

/** Where the indexes of this process are kept. It opens and removes them. */
export interface IndexStore {
  readonly plans: Readonly<SearchPlans>;
  /** Counts the verified records of all indexes. */
  readonly verification: Readonly<Verification>;
  /**
   * `dim`: of the model whose vectors it will be given; absent = that of its segments, to keep them in shape. `tenantId`: whose
   * turn long reads of the catalog take; absent for upkeep.
   */
  open(indexId: string, options: { readonly dim?: number; readonly tenantId?: string }): Promise<OpenIndex>;
  /** Removes every local file of an index that is not open. */
  removeIndex(indexId: string): Promise<void>;
  /** Every index that has local files. */
  storedIndexIds(): Promise<readonly string[]>;
  /** Free bytes where segments are written. */
  freeBytes(): Promise<number>;
  /** Resolves when the store that nodes share answers; absent when there is none. */
  ping?(): Promise<void>;
}
