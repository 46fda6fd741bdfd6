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
  /** The history that both are of: numbers of another one say nothing. */
  readonly epoch: string;
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
