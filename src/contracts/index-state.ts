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

/** A segment whose files are all durable. */
export interface NamedSegment {
  readonly id: number;
  readonly blob: string;
  /** Records below this number may be referenced. Those after it are an unreferenced tail. */
  readonly records: number;
  /** Its objects in the store that nodes share. A segment in the directory of one process has none. */
  readonly files: readonly SegmentFile[];
}

/** A segment as the catalog has it. */
export interface CatalogSegment extends NamedSegment {
  readonly state: SegmentState;
}

/** Versions that a merge moves. `records[i]` is the record of `versionIds[i]` in the merged segment. */
export interface Moves {
  readonly versionIds: Float64Array;
  readonly records: Uint32Array;
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

/** The difference between an index at one moment and what a process has of it in memory: the open index. */
export interface IndexChanges extends IndexHead {
  /** All segments, by id. Where nodes share the index they are all sealed. */
  readonly segments: readonly CatalogSegment[];
  /**
   * The versions that the open index lacks, ordered by segment and record: every version, dead ones included, of the segments that
   * it lacks, and of the other segments those that were born after its generation.
   */
  readonly versions: IndexState['versions'];
  /** The other versions that died after the generation of the open index. */
  readonly died: {
    readonly segmentIds: Float64Array;
    readonly records: Uint32Array;
    /** Generations. */
    readonly died: Float64Array;
  };
}
