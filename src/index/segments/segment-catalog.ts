/**
 * What an index needs from the keeper of the truth about its segments, as plain data and functions: the
 * service binds it to the catalog, which this layer does not know.
 */
import type { CommitUpsertInput, CommitUpsertResult } from '../../document-commits.ts';
import type { IndexState, RecordLocation } from '../../index-state.ts';
import type { VersionMetadata } from './value-loader.ts';

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
  /** One transaction: the moved versions lie at their new places, the removed segments are gone. */
  swapSegments(swap: SegmentSwap): Promise<void>;
  readMetadata(versionIds: readonly number[]): Promise<VersionMetadata>;
  /** Forgets versions that died at or before a generation. */
  forgetDeadVersions(generation: number): Promise<number>;
}
