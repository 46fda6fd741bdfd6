/**
 * Decides whether two kinds of request, sent in turn, take different times. Single times mean nothing on a busy machine. But other
 * work slows both kinds alike. So if there is no difference, either kind is the longer one in half of the pairs.
 */

/** A smaller ratio cannot be measured over a network, so it tells nobody anything. */
const ratioMax = 1.05;
/** Bound in standard deviations. Chance alone exceeds it once in 500 million. */
const deviationsMax = 6;

/** Describes the difference, for the message of a test; `undefined` = there is none. */
export function pairedDifference(pairs: readonly (readonly [number, number])[]): string | undefined {
  const longer = pairs.filter(([one, other]) => one > other).length;
  const deviations = Math.abs(longer - pairs.length / 2) / Math.sqrt(pairs.length / 4);
  const ratios = pairs.map(([one, other]) => one / other).toSorted((a, b) => a - b);
  const middle = ratios[Math.floor(ratios.length / 2)] ?? 1;
  if (deviations <= deviationsMax || Math.max(middle, 1 / middle) <= ratioMax) return undefined;
  return `the first takes ${middle.toFixed(2)} times as long; it is the longer of ${longer} in ${pairs.length} pairs`;
}
