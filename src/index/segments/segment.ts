import type { IndexSettings } from '../index-settings.ts';
import type { NativeIndex } from '../engine/native.ts';
import type { BlobStore } from '../storage/blob-store.ts';
import type { OwnIndexCatalog } from '../catalog.ts';

/** The dependencies of everything that works on the segments of an index. */
export interface SegmentDeps {
  readonly indexId: string;
  readonly native: NativeIndex;
  readonly blobs: BlobStore;
  readonly catalog: OwnIndexCatalog;
  readonly segments: Map<number, Segment>;
  readonly settings: IndexSettings;
}

/**
 * A segment of an open index. An `active` one takes records. A `retired` one takes no more and waits for the upserts that
 * wrote to it. A `sealed` one is immutable.
 */
export interface Segment {
  readonly id: number;
  readonly blob: string;
  state: 'active' | 'retired' | 'sealed';
  /** A write or a sync failed. The file is never written again: a merge moves its live records. */
  unwritable: boolean;
  /** A background job seals it, or a merge fills it and will seal it. */
  sealing: boolean;
  /** The number of upserts in flight that have records here. */
  writers: number;
  tokenVectors: number;
  termBytes: number;
  /** When the first bytes here were no longer needed by any live version; `undefined` while all are. */
  wasteSinceMs: number | undefined;
}

export function newSegment(id: number, blob: string): Segment {
  return {
    id,
    blob,
    state: 'active',
    unwritable: false,
    sealing: false,
    writers: 0,
    tokenVectors: 0,
    termBytes: 0,
    wasteSinceMs: undefined,
  };
}

export function segmentBlob(indexId: string, segmentId: number): string {
  return `${indexId}/${segmentId}.seg`;
}
