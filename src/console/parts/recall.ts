import type { Index } from '../api.ts';

/** The share of the exact best ten that searches find. The answer for one index has it, once some searches were measured. */
export function recallOf(index: Index | undefined): string {
  const mean = index?.recall?.at_10.mean;
  return mean === undefined ? 'not measured yet' : percent(mean);
}

/** With its 95 percent confidence interval. */
export function recallRange(index: Index): string {
  if (index.recall === undefined || index.recall === null) return recallOf(index);
  const { mean, low, high } = index.recall.at_10;
  return `${percent(mean)} (${percent(low)} to ${percent(high)}, of ${index.recall.searches} searches)`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)}%`;
}
