/**
 * Decides which sealed segments to rewrite into one. It is a pure function of their sizes, which are counted in live token
 * vectors.
 *
 * Waste comes first. A segment is rewritten when more than a fifth of it, and at least 4 MiB, is of no use, or when it
 * holds waste that is `wasteAgeMsMax` old. Rewriting for space alone copies at most four live bytes for each byte reclaimed.
 *
 * Number comes second. While more than `sealedSegmentsMax` segments are sealed, the two smallest are merged, and with them each
 * next larger one that is no larger than the sum so far. Nothing is merged below the bound, so that a record is
 * rewritten as seldom as the bound allows. This is a lazy form of Bentley and Saxe's logarithmic method. The cheapest way to
 * keep at most k files is the binomial transform of Mathieu, Staelin, Young and Yousefi (Bigtable Merge Compaction,
 * arXiv 1407.3008). The first merges follow it: they come after 9 and 45 seals. The simulation in the tests counts the
 * token vectors rewritten for each one written, with seals of equal size: 1.6 after 64 seals, 2.6 after 256, 2.9 after
 * 488 (a million chunks of 64), 3.9 after 1024, 6.4 after 4096.
 *
 * A merge for number never makes a segment of more than `mergeTokenVectorsMax`, so that its disk space and time are bounded. The
 * price: above `sealedSegmentsMax / 2 x mergeTokenVectorsMax` token vectors an index has more segments than
 * `sealedSegmentsMax`, about one for each further `mergeTokenVectorsMax / 2`.
 */
import type { IndexSettings } from '../index-settings.ts';

export interface MergeableSegment {
  readonly id: number;
  readonly records: number;
  /** The number of records that the newest generation, or a reader at an older one, sees. */
  readonly live: number;
  /** Summed over all records. */
  readonly tokenVectors: number;
  readonly fileBytes: number;
  readonly wasteSinceMs: number | undefined;
  /** A write to its file failed: its live records must move, whatever the share of waste. */
  readonly unwritable: boolean;
}

type WasteSettings = Pick<IndexSettings, 'wasteAgeMsMax' | 'nowMs'>;

/** Wasteful segments are rewritten together up to `segmentTokenVectorsMax`. */
export type MergeSettings = WasteSettings &
  Pick<IndexSettings, 'sealedSegmentsMax' | 'mergeTokenVectorsMax' | 'segmentTokenVectorsMax'>;

export interface MergePlan {
  readonly reason: 'waste' | 'number';
  readonly segmentIds: readonly number[];
}

const wasteShareMax = 0.2;
/** With less waste only its age makes a segment due: rewriting a tiny file for a few records is not worth it. */
const wasteBytesMin = 4 * 1024 * 1024;

/** The next merge, or `undefined` when none is due. */
export function planMerge(
  segments: readonly MergeableSegment[],
  settings: MergeSettings,
): MergePlan | undefined {
  const ascending = segments.toSorted((a, b) => liveTokenVectors(a) - liveTokenVectors(b) || a.id - b.id);
  // A segment without live records costs nothing to remove.
  const wasteful = ascending.filter((segment) => segment.live === 0 || isWasteful(segment, settings));
  if (wasteful.length > 0) {
    return { reason: 'waste', segmentIds: idsWithin(wasteful, settings.segmentTokenVectorsMax) };
  }
  const gathered = gather(ascending, settings);
  return gathered === undefined ? undefined : { reason: 'number', segmentIds: gathered };
}

export function isWasteful(
  segment: Pick<MergeableSegment, 'records' | 'live' | 'fileBytes' | 'wasteSinceMs' | 'unwritable'>,
  { wasteAgeMsMax, nowMs }: WasteSettings,
): boolean {
  if (segment.unwritable) return true;
  const waste = segment.records - segment.live;
  if (waste === 0) return false;
  const wasteShare = waste / segment.records;
  if (wasteShare > wasteShareMax && wasteShare * segment.fileBytes >= wasteBytesMin) return true;
  return segment.wasteSinceMs !== undefined && nowMs() - segment.wasteSinceMs >= wasteAgeMsMax;
}

/** How many token vectors a merge keeps of a segment, if its documents are of one size. */
export function liveTokenVectors(
  segment: Pick<MergeableSegment, 'records' | 'live' | 'tokenVectors'>,
): number {
  return segment.records === 0 ? 0 : (segment.tokenVectors * segment.live) / segment.records;
}

/** The factor on the pace of merges. It doubles with each segment above the bound, so that merges catch up with any writer. */
export function hasteOf(
  sealed: number,
  { sealedSegmentsMax }: Pick<IndexSettings, 'sealedSegmentsMax'>,
): number {
  return 2 ** Math.max(0, sealed - sealedSegmentsMax - 1);
}

/** The first segments whose live token vectors fit `tokenVectorsMax` together, and at least one. */
function idsWithin(segments: readonly MergeableSegment[], tokenVectorsMax: number): readonly number[] {
  let tokenVectors = 0;
  const fitting = segments.filter((segment, place) => {
    tokenVectors += liveTokenVectors(segment);
    return place === 0 || tokenVectors <= tokenVectorsMax;
  });
  return fitting.map(({ id }) => id);
}

function gather(
  ascending: readonly MergeableSegment[],
  settings: MergeSettings,
): readonly number[] | undefined {
  if (ascending.length <= settings.sealedSegmentsMax) return undefined;
  let tokenVectors = 0;
  let count = 0;
  for (const segment of ascending) {
    const size = liveTokenVectors(segment);
    if (tokenVectors + size > settings.mergeTokenVectorsMax) break;
    if (count >= 2 && size > tokenVectors) break;
    tokenVectors += size;
    count += 1;
  }
  return count < 2 ? undefined : ascending.slice(0, count).map(({ id }) => id);
}
