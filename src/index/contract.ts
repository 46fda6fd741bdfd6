/**
 * What the service asks of an index, however it is kept: in one process's own directory (`open-index.ts`), or in an
 * object store with a catalog that several nodes share (`cluster/cluster-index.ts`).
 */
import type { NamedSegment, RecordLocation } from '../index-state.ts';
import type { BornVersion } from './publishing/publish-queue.ts';
import type { NativeRecord, NativeSearch, NativeSearchResult, SegmentInfo } from './engine/native.ts';

/** Counts the searches of all indexes by how their candidates were chosen. */
export type SearchPlans = Record<NativeSearchResult['plan'], number>;

/** Records of one upsert, written document by document. */
export interface IndexWriter {
  append(record: NativeRecord): Promise<BornVersion>;
  /**
   * Makes the records durable, runs `work` (the transaction that refers to them) and publishes what it
   * committed. `undefined` from `work` = nothing was committed. `segments` are those that the transaction must name.
   */
  commit<T>(work: (segments: readonly NamedSegment[]) => Promise<CommitWork<T>>): Promise<T>;
}

export interface CommitWork<T> {
  readonly result: T;
  /** Absent when the transaction changed nothing. */
  readonly commit?: { readonly generation: number; readonly died: readonly RecordLocation[] };
}

export interface IndexReader {
  search(search: Omit<NativeSearch, 'generation'>): Promise<NativeSearchResult>;
}

export interface IndexStatistics {
  readonly segments: readonly SegmentInfo[];
  readonly recordsLive: number;
}

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
  /** Publishes a generation that was committed elsewhere, and all before it, from the catalog. */
  catchUp(generation: number): Promise<void>;
  /** Runs `work` on a snapshot; what it refers to stays resolvable until `work` settles. */
  read<T>(work: (reader: IndexReader) => Promise<T>): Promise<T>;
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

/** Where the indexes of a process are. */
export interface IndexStorage {
  /** `dim`: of the model whose vectors it will be given; absent = that of its segments, to keep them in shape. */
  open(indexId: string, model: { readonly dim?: number }): Promise<OpenIndex>;
  /** Removes every local file of an index that is not open. */
  removeIndex(indexId: string): Promise<void>;
  /** Every index that has local files. */
  storedIndexIds(): Promise<readonly string[]>;
}
