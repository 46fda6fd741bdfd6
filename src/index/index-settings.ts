/** The settings of an open index, and their values in service with the reasons. */
import { defaultRecallSettings, type RecallSettings } from './recall/measuring.ts';

export interface IndexSettings {
  /** A segment with this many token vectors is full. */
  readonly segmentTokenVectorsMax: number;
  /** A segment with this many bytes of filter terms is full. */
  readonly segmentTermBytesMax: number;
  /** A sealed segment gets centroid codes from this many token vectors on. Smaller ones are scored exactly. */
  readonly codesTokenVectorsMin: number;
  /** An index has at most this many sealed segments once background work has caught up. */
  readonly sealedSegmentsMax: number;
  /** A merge that reduces the number of segments makes none with more live token vectors. */
  readonly mergeTokenVectorsMax: number;
  /** All merges of the process together copy this many bytes a second, as long as they keep up with the writers. */
  readonly copyBytesPerSecond: number;
  /** One index compares this many bytes a second with their checksums in the background. */
  readonly verifyBytesPerSecond: number;
  /** A sealed segment is verified again when its last verification is this old. */
  readonly verifyAgeMsMax: number;
  /** A segment is rewritten when data in it has been deleted for this long. */
  readonly wasteAgeMsMax: number;
  readonly nowMs: () => number;
  readonly recall: RecallSettings;
}

export const defaultIndexSettings: IndexSettings = {
  // The active segment is scored exactly. 131,072 token vectors take about 1.5 ms on two cores.
  segmentTokenVectorsMax: 131_072,
  // The first filter after a write reads the terms of the new records. All of them take about 2 ms.
  segmentTermBytesMax: 8 * 1024 * 1024,
  codesTokenVectorsMin: 32_768,
  sealedSegmentsMax: 8,
  // This is 16.6 GB at 128 dimensions. Eight segments hold at least 512 M token vectors.
  mergeTokenVectorsMax: 128_000_000,
  copyBytesPerSecond: 64 * 1024 * 1024,
  verifyBytesPerSecond: 16 * 1024 * 1024,
  verifyAgeMsMax: 7 * 24 * 3_600_000,
  // Deleted data must be physically gone within 24 hours. Rewriting starts after half of that.
  wasteAgeMsMax: 12 * 3_600_000,
  nowMs: Date.now,
  recall: defaultRecallSettings,
};
