/**
 * Estimates the recall of an index from searches that were compared with exact ones. Comparisons with a nearby breadth count, too.
 * Misses are taken to be in inverse proportion to the breadth, which is about right within a factor of two.
 */

/** One search beside the exact one. */
export interface Comparison {
  readonly breadth: number;
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

const nearbyFactor = 2;
/** The normal quantile of a 95 percent interval. */
const z = 1.96;

/**
 * The share of the exact best that a search found. Both score exactly. A chunk that scores as much as the last of the best ties with it, and
 * counts as found.
 */
export function foundShare(found: Float32Array, exact: Float32Array, best: number): number {
  const count = Math.min(best, exact.length);
  const last = exact[count - 1] ?? 0;
  return count === 0 ? 1 : found.subarray(0, count).filter((score) => score >= last).length / count;
}

/** The comparisons that say something about this breadth. */
export function comparisonsNear(comparisons: readonly Comparison[], breadth: number): readonly Comparison[] {
  const factorOf = (other: number): number => Math.max(other / breadth, breadth / other);
  return comparisons.filter((comparison) => factorOf(comparison.breadth) <= nearbyFactor);
}

/** The recall at a breadth; `undefined` without a comparison nearby. */
export function recallAt(
  comparisons: readonly Comparison[],
  breadth: number,
  best: 10 | 100,
): Estimate | undefined {
  const near = comparisonsNear(comparisons, breadth).map(({ breadth: other, at10, at100 }) => ({
    missed: 1 - (best === 10 ? at10 : at100),
    /** How much more is missed with its breadth than with this one. */
    weight: breadth / other,
  }));
  if (near.length === 0) return undefined;
  const weights = sum(near.map(({ weight }) => weight));
  const missed = Math.min(1, sum(near.map((one) => one.missed)) / weights);
  // Results of one search are missed together. So they count as fewer trials: as many as their variance shows.
  const squares = near.map((one) => (one.missed - one.weight * missed) ** 2 / one.weight);
  const expected = (missed * (1 - missed)) / best;
  const dispersion = expected === 0 ? 1 : Math.max(1, sum(squares) / near.length / expected);
  return wilson(1 - missed, (best * weights) / dispersion);
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
