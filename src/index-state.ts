/** What the catalog holds of an index, as the index store reads it: neither knows the other. */

/** Where a document version's record lies: the n-th record of a segment. */
export interface RecordLocation {
  readonly segmentId: number;
  readonly record: number;
}

export type SegmentState = 'active' | 'sealed';

export interface SegmentRow {
  readonly id: number;
  readonly indexId: string;
  readonly blob: string;
  readonly state: SegmentState;
  /** Records below this number may be referenced; what lies beyond is an unreferenced tail. */
  readonly recordsReferenced: number;
}

/** Columns, one entry per version (live, or dead and not yet forgotten), ordered by segment and record. */
export interface IndexState {
  readonly generation: number;
  readonly segments: readonly SegmentRow[];
  readonly versions: {
    readonly segmentIds: Float64Array;
    readonly records: Uint32Array;
    readonly versionIds: Float64Array;
    readonly born: Float64Array;
    /** 0 = alive. */
    readonly died: Float64Array;
  };
}
