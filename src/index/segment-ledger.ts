/**
 * What an index needs from the keeper of the truth about its segments, as plain data and functions: the
 * service binds it to the catalog, which this layer does not know.
 */
import type { RecordLocation } from './publish-queue.ts';

export interface SegmentEntry {
  readonly id: number;
  readonly blob: string;
  readonly state: 'active' | 'sealed';
  /** Leading records that may be referenced; what lies beyond is an unreferenced tail. */
  readonly recordsReferenced: number;
}

/** Columns: one entry per version that is alive, or dead and not yet forgotten. */
export interface StoredState {
  readonly generation: number;
  readonly segments: readonly SegmentEntry[];
  readonly versions: {
    readonly segmentIds: Float64Array;
    readonly records: Uint32Array;
    readonly versionIds: Float64Array;
    readonly born: Float64Array;
    /** 0 = alive. */
    readonly died: Float64Array;
  };
}

export interface SegmentSwap {
  readonly removedSegmentIds: readonly number[];
  readonly moves: readonly { readonly versionId: number; readonly to: RecordLocation }[];
}

/** Every write is durable when its promise settles. */
export interface SegmentLedger {
  loadState(): Promise<StoredState>;
  allocateSegmentId(): Promise<number>;
  createSegment(segment: { readonly id: number; readonly blob: string }): Promise<void>;
  sealSegment(segmentId: number, records: number): Promise<void>;
  /** One transaction: the moved versions lie at their new places, the removed segments are gone. */
  swapSegments(swap: SegmentSwap): Promise<void>;
  /** Forgets versions that died at or before a generation. */
  forgetDeadVersions(generation: number): Promise<number>;
}
