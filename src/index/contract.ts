/**
 * An index as the service uses it. One process keeps an index in its own directory (`local-index.ts`). Several nodes
 * keep it in an object store and share its catalog (`cluster/cluster-index.ts`).
 */
import type { CommitUpsertInput, CommitUpsertResult } from '../contracts/document-commits.ts';
import type { IndexHead, NamedSegment, RecordLocation } from '../contracts/index-state.ts';
import type { RowShape } from '../contracts/row-shape.ts';
import type { Repeats } from './ask-again.ts';
import type { RecallReport } from './recall/index-recall.ts';
import type { Verification } from './segments/scrub.ts';
import type {
  NativeCounting,
  NativeCounts,
  NativeMatching,
  NativeRecord,
  NativeSearch,
  NativeSearchResult,
  NativeSpanCounting,
  NativeSpanCounts,
  SegmentInfo,
} from './engine/native.ts';

/** Counts the searches of all indexes by how their candidates were found. */
export type SearchPlans = Record<NativeSearchResult['plan'], number>;

/** Where the records of an upsert lie. */
export interface PlacedRecords {
  /** In the order of the appends. */
  readonly locations: readonly RecordLocation[];
  /** The segments that the commit must name. */
  readonly segments: readonly NamedSegment[];
}

/** Records of one upsert, written document by document. */
export interface IndexWriter {
  /** The caller must not change the record afterwards. */
  append(record: NativeRecord): Promise<void>;
  /**
   * Makes the records durable, asks `upsert` what to commit, commits that and publishes it. Once `upsert` has been called
   * the commit may have happened, even if this rejects.
   */
  commit(upsert: (placed: PlacedRecords) => CommitUpsertInput): Promise<CommitUpsertResult>;
}

export interface CommitWork<T> {
  readonly result: T;
  /** Absent when the transaction changed nothing. */
  readonly commit?: { readonly generation: number; readonly died: readonly RecordLocation[] };
}

/** Who asks an index. */
export interface Asker {
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Runs work on the engine's threads when it is the asker's turn. */
  readonly inTurn: <T>(task: () => Promise<T>) => Promise<T>;
}

export interface IndexReader {
  search(search: Omit<NativeSearch, 'generation'>, asker?: Asker): Promise<NativeSearchResult>;
  /** Ids of the versions that match, ascending. */
  matching(matching: Omit<NativeMatching, 'generation'>, asker?: Asker): Promise<Float64Array>;
  /** The number of token vectors of the live matching chunks. */
  tokenVectors(matching: Omit<NativeMatching, 'generation'>, asker?: Asker): Promise<number>;
  /** Counts the documents that have each span of a query, and the chunks that a search with it would score. */
  countSpans(counting: Omit<NativeSpanCounting, 'generation'>, asker?: Asker): Promise<NativeSpanCounts>;
  /** Counts the values of fields over the documents that match. */
  countValues(counting: Omit<NativeCounting, 'generation'>, asker?: Asker): Promise<NativeCounts>;
  /** The value of a field whose key a count returned, in the metadata of a document that has it. */
  findValue(object: string, field: string, key: Uint8Array): string | undefined;
  /** Waits until this node has what others had committed before the call. Rejects with a 503 when that takes too long. */
  statistics(timeoutMs: number): Promise<IndexStatistics>;
}

export interface IndexStatistics {
  readonly indexId: string;
  readonly segments: readonly SegmentInfo[];
  readonly recordsLive: number;
  /** `undefined` until it is measured. */
  readonly recall: RecallReport | undefined;
  /** How much this node has of an index that nodes share. */
  readonly followed?: FollowedIndex;
}

export interface FollowedIndex {
  readonly indexId: string;
  /** The last commit that this node has; -1 = none. */
  readonly generation: number;
}

/** An index that this process has open: a `LocalIndex` or a `ClusterIndex`. */
export interface OpenIndex {
  /** Components of a token vector. */
  readonly shape: RowShape;
  /** False once it is closed, or after a failure that only opening it again mends. */
  readonly usable: boolean;
  /** Whether background work is going on. */
  readonly busy: boolean;
  /** Runs an upsert. Records that `work` appends and does not commit are waste. */
  write<T>(work: (writer: IndexWriter) => Promise<T>): Promise<T>;
  /** Runs a transaction that only ends versions (a delete), then publishes it. */
  commitDelete<T>(transaction: () => Promise<CommitWork<T>>): Promise<T>;
  /**
   * The record at a place that the catalog named, as it was appended; `undefined` when a merge has moved it since.
   * `timeoutMs` bounds the wait for parts that a node must fetch first.
   */
  readRecord(at: RecordLocation, timeoutMs: number): Promise<NativeRecord | undefined>;
  /** Reads commits up to this generation from the catalog and publishes them. They were made beside the open index. */
  catchUp(generation: number): Promise<void>;
  /**
   * Runs `work` on a snapshot. The catalog keeps the versions that it sees until `work` settles. `head`: the catalog's answer to
   * a question that was asked after the request came, where several processes write; absent = the index asks.
   */
  read<T>(work: (reader: IndexReader) => Promise<T>, head?: Promise<IndexHead>): Promise<T>;
  /** Forgets dead versions, seals retired segments and reclaims space. Callers share a run. Never rejects. */
  maintain(): Promise<void>;
  statistics(): IndexStatistics;
  /** `undefined` until it is measured. */
  readonly recall: RecallReport | undefined;
  /** Gives up background work, which the next open takes up again. Reads and writes go on. Idempotent. */
  windDown(): void;
  /** Idempotent. */
  close(): void;
  /** Resolves when no background job runs. A closed index may be opened again only then. */
  settled(): Promise<void>;
}

/** Where this process keeps its indexes. It opens and removes them. */
export interface IndexStore {
  readonly plans: Readonly<SearchPlans>;
  /** Counts the searches of all indexes that ran again. The service adds those that met an expired document. */
  readonly repeats: Repeats;
  /** Counts the verified records of all indexes. */
  readonly verification: Readonly<Verification>;
  /**
   * `shape`: of the rows that it will be given; absent = that of its segments, which is enough for upkeep.
   * `tenantId`: the tenant on whose account long reads of the catalog wait and memory is taken; absent for tools.
   */
  open(
    indexId: string,
    options: { readonly shape?: RowShape; readonly tenantId?: string },
  ): Promise<OpenIndex>;
  /** Removes every local file of an index that is not open. */
  removeIndex(indexId: string): Promise<void>;
  /** Every index that has local files. */
  storedIndexIds(): Promise<readonly string[]>;
  /** Free bytes where segments are written. */
  freeBytes(): Promise<number>;
  /** Resolves when the object store answers; absent where there is none. */
  ping?(): Promise<void>;
}
