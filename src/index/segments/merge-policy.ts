/**
 * Which sealed segments to rewrite into one, as a pure function of their sizes.
 *
 * Waste first: a segment of which more than a fifth is of no use (and at least 4 MiB of it), or that holds
 * any waste of the age at which deleted data must be physically gone. Rewriting for space alone costs at
 * most four live bytes a byte reclaimed.
 *
 * Then number: while more than `sealedMax` segments are sealed, the smallest two go together, and with them
 * every next larger one that is no larger than what has gathered so far. Nothing is merged before the bound
 * is passed, so that a record is rewritten as seldom as the bound allows. This is Bentley and Saxe's
 * logarithmic method made lazy; the least cost for a bound of k files is the binomial transform of Mathieu,
 * Staelin, Young and Yousefi (Bigtable Merge Compaction, arXiv 1407.3008), which the first merges follow:
 * 9, then 45 seals. Token vectors rewritten per one written, from the simulation in the tests, after 64, 256,
 * 488 (a million chunks of 64), 1024 and 4096 seals of equal size: 1.6, 2.6, 2.9, 3.9 and 6.4.
 *
 * Size is live token vectors. A merge for number never makes more than `tokenVectorsMax` of them, so that
 * the disk space and the time of one merge are bounded. The price: `sealedMax` holds up to
 * `sealedMax / 2 x tokenVectorsMax` token vectors an index; beyond, there is about one more segment for each
 * further `tokenVectorsMax / 2`.
 */

export interface MergeableSegment {
  readonly id: number;
  readonly records: number;
  /** Records that the newest generation, or a reader at an older one, sees. */
  readonly live: number;
  /** Summed over all records. */
  readonly tokenVectors: number;
  readonly fileBytes: number;
  readonly wasteSinceMs: number | undefined;
  /** Its file takes no more writes: what lives there must move, whatever the share of waste. */
  readonly poisoned: boolean;
}

export interface MergeBounds {
  /** Sealed segments of one index once the background work has caught up. */
  readonly sealedMax: number;
  /** Live token vectors of the result of a merge for number. */
  readonly tokenVectorsMax: number;
  /** Live token vectors up to which wasteful segments are rewritten together. */
  readonly wasteTokenVectorsMax: number;
  readonly wasteAgeMsMax: number;
}

export interface MergePlan {
  readonly reason: 'waste' | 'number';
  readonly segmentIds: readonly number[];
}

const wasteShareMax = 0.2;
/** Below this much waste only age makes a segment due: rewriting tiny files for a few records is not worth it. */
const wasteBytesMin = 4 * 1024 * 1024;

/** The next merge, or `undefined` when none is due. */
export function planMerge(
  segments: readonly MergeableSegment[],
  bounds: MergeBounds,
  nowMs: number,
): MergePlan | undefined {
  const ascending = segments.toSorted((a, b) => liveTokenVectors(a) - liveTokenVectors(b) || a.id - b.id);
  // What holds nothing alive costs nothing to be rid of.
  const wasteful = ascending.filter(
    (segment) => segment.live === 0 || isWasteful(segment, bounds.wasteAgeMsMax, nowMs),
  );
  if (wasteful.length > 0) {
    return { reason: 'waste', segmentIds: idsWithin(wasteful, bounds.wasteTokenVectorsMax) };
  }
  const gathered = gather(ascending, bounds);
  return gathered === undefined ? undefined : { reason: 'number', segmentIds: gathered };
}

export function isWasteful(
  segment: Pick<MergeableSegment, 'records' | 'live' | 'fileBytes' | 'wasteSinceMs' | 'poisoned'>,
  wasteAgeMsMax: number,
  nowMs: number,
): boolean {
  if (segment.poisoned) return true;
  const waste = segment.records - segment.live;
  if (waste === 0) return false;
  const wasteShare = waste / segment.records;
  if (wasteShare > wasteShareMax && wasteShare * segment.fileBytes >= wasteBytesMin) return true;
  return segment.wasteSinceMs !== undefined && nowMs - segment.wasteSinceMs >= wasteAgeMsMax;
}

/** What a merge keeps of a segment, taking its documents to be of one size. */
export function liveTokenVectors(
  segment: Pick<MergeableSegment, 'records' | 'live' | 'tokenVectors'>,
): number {
  return segment.records === 0 ? 0 : (segment.tokenVectors * segment.live) / segment.records;
}

/** As many as one target holds, and at least one. */
function idsWithin(segments: readonly MergeableSegment[], tokenVectorsMax: number): readonly number[] {
  let tokenVectors = 0;
  const fitting = segments.filter((segment, place) => {
    tokenVectors += liveTokenVectors(segment);
    return place === 0 || tokenVectors <= tokenVectorsMax;
  });
  return fitting.map(({ id }) => id);
}

function gather(ascending: readonly MergeableSegment[], bounds: MergeBounds): readonly number[] | undefined {
  if (ascending.length <= bounds.sealedMax) return undefined;
  let tokenVectors = 0;
  let count = 0;
  for (const segment of ascending) {
    const size = liveTokenVectors(segment);
    if (tokenVectors + size > bounds.tokenVectorsMax) break;
    if (count >= 2 && size > tokenVectors) break;
    tokenVectors += size;
    count += 1;
  }
  return count < 2 ? undefined : ascending.slice(0, count).map(({ id }) => id);
}
