/**
 * The breadth of an index is a factor on the length of its shortlists. It moves until the recall of the best ten at the default `candidate_k` lies
 * between the target and halfway from there to 1: between .98 and .99. Where the smallest breadth finds more, it stays there.
 *
 * It moves in steps, so that an index comes back to a breadth that it has been measured with.
 */
import type { Estimate } from './estimate.ts';

export const breadthMin = 0.25;
/** More finds nothing more: what is missed then is missed by the candidates, which are too few, and not by the shortlist. */
export const breadthMax = 4;
/** The breadth of an index that has not been measured. */
export const safeBreadth = 2;
/** Steps of a factor of two. One changes the misses by less than the band is wide. */
const stepsOfTwo = 2;

/**
 * The breadth after an estimate of the recall with the present one. It goes down only if that recall is surely no less than the
 * target, and up only if it is surely no more than the top of the band.
 */
export function nextBreadth(breadth: number, { mean, low, high }: Estimate, target: number): number {
  const top = (1 + target) / 2;
  const isLow = mean < target && high <= top;
  const isHigh = mean > top && low >= target;
  if (!isLow && !isHigh) return breadth;
  const missedWanted = 1 - (target + top) / 2;
  // The root takes half of the way: an estimate is coarse, and how steep the curve is here is not known.
  const wanted = Math.round((stepsOfTwo * Math.log2((1 - mean) / missedWanted)) / 2);
  // It goes down by one step: nothing is known about the recall there.
  const steps = isHigh ? -1 : clamp(wanted, 1, stepsOfTwo);
  const place = Math.round(stepsOfTwo * Math.log2(breadth)) + steps;
  return clamp(2 ** (place / stepsOfTwo), breadthMin, breadthMax);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
