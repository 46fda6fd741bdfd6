/**
 * Estimates the recall of an index from searches that were compared with exact ones. A comparison counts for the breadth with
 * which it was made, and for no other: how misses depend on the breadth is another matter in every index. It counts no more once
 * the index has grown or shrunk by a twentieth, because new texts may be missed far more often than those before.
 */

/** One search beside the exact one. */
export interface Comparison {
  readonly breadth: number;
  /** Chunks of the index; absent in files of earlier releases. */
  readonly chunks?: number | undefined;
  /** The share of the exact best ten that was found, and that of the best hundred. */
  readonly at10: number;
  readonly at100: number;
}

/** A recall and its 95 percent confidence interval. */
export interface Estimate {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

const changedShare = 0.05;
/** The normal quantile of a 95 percent interval. */
const z = 1.96;
/**
 * Results of one search are missed together, and how much so shows only in many searches. These many searches, of which each
 * misses everything or nothing, stand for what the first ones do not show.
 */
const unseenSearches = 5;

/**
 * The share of the exact best that a search found. Both score exactly. A chunk that scores as much as the last of the best ties with it, and
 * counts as found.
 */
export function foundShare(found: Float32Array, exact: Float32Array, best: number): number {
  const count = Math.min(best, exact.length);
  const last = exact[count - 1] ?? 0;
  return count === 0 ? 1 : found.subarray(0, count).filter((score) => score >= last).length / count;
}

/** The comparisons that say something about this breadth, with the index as it was at the last of them. */
export function comparisonsWith(comparisons: readonly Comparison[], breadth: number): readonly Comparison[] {
  const now = comparisons.at(-1)?.chunks ?? 0;
  return comparisons.filter(
    ({ breadth: other, chunks = 0 }) =>
      other === breadth && Math.abs(chunks - now) <= changedShare * Math.max(chunks, now),
  );
}

/** The recall at a breadth; `undefined` without a comparison at it. */
export function recallAt(
  comparisons: readonly Comparison[],
  breadth: number,
  best: 10 | 100,
): Estimate | undefined {
  const shares = comparisonsWith(comparisons, breadth).map(({ at10, at100 }) => (best === 10 ? at10 : at100));
  const count = shares.length;
  if (count === 0) return undefined;
  const mean = Math.min(1, sum(shares) / count);
  // A search counts as one trial if it finds all or nothing, and as `best` trials if its results are missed one by one.
  const varianceMost = mean * (1 - mean);
  const variance = sum(shares.map((share) => (share - mean) ** 2)) / count;
  const together = Math.max(1 / best, varianceMost === 0 ? 0 : variance / varianceMost);
  return wilson(mean, count / ((count * together + unseenSearches) / (count + unseenSearches)));
}

/** The interval of Wilson (1927). It is not empty where nothing was missed. */
function wilson(mean: number, trials: number): Estimate {
  const middle = (mean + z ** 2 / (2 * trials)) / (1 + z ** 2 / trials);
  const half =
    (z * Math.sqrt((mean * (1 - mean)) / trials + z ** 2 / (4 * trials ** 2))) / (1 + z ** 2 / trials);
  return { mean, low: Math.min(mean, middle - half), high: Math.max(mean, middle + half) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
