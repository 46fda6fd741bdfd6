/**
 * The breadth of an index is a factor on the length of its shortlists. It moves until the recall of the best ten at the default `candidate_k` lies
 * between the target and halfway from there to 1: between .98 and .99. Where the smallest breadth finds more, it stays there.
 */
import type { Estimate } from './estimate.ts';

export const breadthMin = 0.25;
/** More finds nothing more: what is missed then is missed by the candidates, which are too few, and not by the shortlist. */
export const breadthMax = 4;
/** The breadth of an index that has not been measured. */
export const safeBreadth = 2;
const stepMax = 2;

/**
 * The breadth after an estimate of the recall with the present one. It goes down only if that recall is surely no less than the
 * target.
 */
export function nextBreadth(breadth: number, { mean, low }: Estimate, target: number): number {
  const top = (1 + target) / 2;
  const isInBand = mean >= target && mean <= top;
  if (isInBand || (mean > top && low < target)) return breadth;
  const missedWanted = 1 - (target + top) / 2;
  // The root takes half of the way: an estimate is coarse, and how steep the curve is here is not known.
  const factor = clamp(Math.sqrt((1 - mean) / missedWanted), 1 / stepMax, stepMax);
  return clamp(breadth * factor, breadthMin, breadthMax);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
