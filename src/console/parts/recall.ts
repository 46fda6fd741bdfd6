import type { Index } from '../api.ts';

interface Estimate {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** An answer for one index has it once the service has measured some searches. */
interface Measured {
  readonly recall?: { readonly at_10: Estimate; readonly searches: number } | null;
}

/** The share of the exact best ten that searches find. */
export function recallOf(index: (Index & Measured) | undefined): string {
  const mean = index?.recall?.at_10.mean;
  return mean === undefined ? 'not measured yet' : percent(mean);
}

/** With its 95 percent confidence interval. */
export function recallRange(index: Index & Measured): string {
  if (index.recall === undefined || index.recall === null) return recallOf(index);
  const { mean, low, high } = index.recall.at_10;
  return `${percent(mean)} (${percent(low)} to ${percent(high)}, of ${index.recall.searches} searches)`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)}%`;
}
