/** The functions of the catalog that an index needs. This room does not know the catalog: the service binds the two. */
import type { CommitUpsertInput, CommitUpsertResult } from '../contracts/document-commits.ts';
import type { IndexState, RecordLocation } from '../contracts/index-state.ts';
import type { VersionMetadata } from './segments/value-loader.ts';

export interface SegmentSwap {
  readonly removedSegmentIds: readonly number[];
  readonly moves: readonly { readonly versionId: number; readonly to: RecordLocation }[];
}

/** Every write is durable when its promise settles. */
export interface SegmentCatalog {
  loadState(): Promise<IndexState>;
  allocateSegmentId(): Promise<number>;
  createSegment(segment: { readonly id: number; readonly blob: string }): Promise<void>;
  sealSegment(segmentId: number, records: number): Promise<void>;
  commitUpsert(upsert: CommitUpsertInput): Promise<CommitUpsertResult>;
  /** Moves versions to their new places and removes segments, in one transaction. */
  swapSegments(swap: SegmentSwap): Promise<void>;
  readMetadata(versionIds: readonly number[]): Promise<VersionMetadata>;
  /** Forgets versions that died at or before a generation. */
  forgetDeadVersions(generation: number): Promise<number>;
}
