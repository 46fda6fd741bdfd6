/** The state of an index in the catalog, as the index store reads it. Neither knows the other. */

/** The place of a document version's record: the n-th record of a segment. */
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
  /** Records below this number may be referenced. Those after it are an unreferenced tail. */
  readonly recordsReferenced: number;
}

/** Columns with one entry for each version that is live, or dead and not yet removed; ordered by segment and record. */
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

/** One object of a segment. Its key is the segment's blob and the ending. A key is never used again. */
export interface SegmentFile {
  /** `''` for the segment itself, `.codes`, `.postings` or `.codebook`. */
  readonly ending: string;
  readonly bytes: number;
  readonly sha256: string;
  /** The name by which codes refer to their codebook. Only a codebook has it. */
  readonly name?: string;
}

/** A segment whose objects are all durable in the blob store. */
export interface NamedSegment {
  readonly id: number;
  readonly blob: string;
  readonly records: number;
  readonly files: readonly SegmentFile[];
}

/** The state that a search must have seen before it runs. */
export interface IndexHead {
  /** Counts commits. */
  readonly generation: number;
  /** Counts merges, which change the places of records without a new generation. */
  readonly layout: number;
  /** The history of both numbers. Numbers of two histories do not compare. */
  readonly epoch: string;
}

/** The difference between an index at one moment and a node's copy of it. */
export interface IndexChanges extends IndexHead {
  /** All sealed segments, by id. */
  readonly segments: readonly NamedSegment[];
  /** Every version, dead ones included, of the segments that the node lacks; ordered by segment and record. */
  readonly versions: IndexState['versions'];
  /** Versions of the other segments that died after the node's generation. */
  readonly died: {
    readonly segmentIds: Float64Array;
    readonly records: Uint32Array;
    /** Generations. */
    readonly died: Float64Array;
  };
}
