/** The findings of the addon about files of an index. */
import type { RowShape } from '../../contracts/row-shape.ts';

export interface SegmentInspection extends RowShape {
  readonly segmentId: number;
  readonly state: 'active' | 'sealed';
  readonly fileBytes: number;
  readonly records: number;
  readonly chunks: number;
  readonly tokenVectors: number;
  /** Bytes of records with headers and padding, and of the directory. The rest is header, trailer and spare space. */
  readonly recordBytes: number;
  readonly directoryBytes: number;
  readonly recordsVerified: number;
  readonly damaged: readonly { readonly record: number; readonly what: string }[];
  readonly versionIds: Float64Array;
}

export interface CodesInspection {
  readonly centroids: number;
  /** Summed over all chunks. */
  readonly codes: number;
  /** '' = nothing is wrong. */
  readonly damage: string;
}

export interface PostingsInspection {
  readonly terms: number;
  /** Summed over all terms. */
  readonly postings: number;
  /** '' = nothing is wrong. */
  readonly damage: string;
}

export interface ColumnInspection {
  readonly field: string;
  /** Distinct values. One that goes beyond a block of the file counts again. */
  readonly values: number;
  /** Distinct values of each record, summed over all records. An array has one for each item. */
  readonly items: number;
  /** '' = nothing is wrong. */
  readonly damage: string;
}
