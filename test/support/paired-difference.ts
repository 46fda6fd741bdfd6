/**
 * Whether two kinds of request, asked in turn, take different times. A machine with other work makes single times
 * useless, but comes over both kinds alike: of pairs without a difference either is the longer one as often.
 */

/** A ratio that would be of use to nobody over a network. */
const ratioMax = 1.05;
/** Standard deviations; pure chance passes it once in 500 million. */
const deviationsMax = 6;

/** What the difference is, for a test's message; undefined where there is none. */
export function pairedDifference(pairs: readonly (readonly [number, number])[]): string | undefined {
  const longer = pairs.filter(([one, other]) => one > other).length;
  const deviations = Math.abs(longer - pairs.length / 2) / Math.sqrt(pairs.length / 4);
  const ratios = pairs.map(([one, other]) => one / other).toSorted((a, b) => a - b);
  const middle = ratios[Math.floor(ratios.length / 2)] ?? 1;
  if (deviations <= deviationsMax || Math.max(middle, 1 / middle) <= ratioMax) return undefined;
  return `the first takes ${middle.toFixed(2)} times as long; it is the longer of ${longer} in ${pairs.length} pairs`;
}
