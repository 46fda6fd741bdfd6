/** What an open index is run with, and the values in service with their reasons. */

export interface IndexSettings {
  /** Token vectors at which a segment is full. */
  readonly segmentTokenVectorsMax: number;
  /** Bytes of filter terms at which it is full, too. */
  readonly segmentTermBytesMax: number;
  /** Token vectors from which a sealed segment gets centroid codes; smaller ones are scored exactly. */
  readonly codesTokenVectorsMin: number;
  /** Sealed segments of an index once the background work has caught up. */
  readonly sealedSegmentsMax: number;
  /** Token vectors of the largest segment that merging for number makes. */
  readonly mergeTokenVectorsMax: number;
  /** Bytes a second that all merges of the process copy while they keep up. */
  readonly copyBytesPerSecond: number;
  /** Bytes a second of one index that are compared with their checksums in the background. */
  readonly verifyBytesPerSecond: number;
  /** Sealed segments are verified again at this age. */
  readonly verifyAgeMsMax: number;
  /** Deleted data is rewritten away at this age. */
  readonly wasteAgeMsMax: number;
  readonly nowMs: () => number;
}

export const defaultIndexSettings: IndexSettings = {
  // The active segment is scored exactly: 131,072 token vectors take about 1.5 ms on two cores.
  segmentTokenVectorsMax: 131_072,
  // Filters read terms of the active segment in its records: all of them take about 2 ms.
  segmentTermBytesMax: 8 * 1024 * 1024,
  codesTokenVectorsMin: 32_768,
  sealedSegmentsMax: 8,
  // 16.6 GB at 128 dimensions: eight segments hold at least 512 M token vectors.
  mergeTokenVectorsMax: 128_000_000,
  copyBytesPerSecond: 64 * 1024 * 1024,
  verifyBytesPerSecond: 16 * 1024 * 1024,
  verifyAgeMsMax: 7 * 24 * 3_600_000,
  // Deleted data must be physically gone within 24 hours: rewriting starts at half of it.
  wasteAgeMsMax: 12 * 3_600_000,
  nowMs: Date.now,
};
