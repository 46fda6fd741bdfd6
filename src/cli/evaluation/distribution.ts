/** Summary of a sample. */
export interface Distribution {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** Nearest-rank percentile: the smallest value with at least `percent` % of the sample at or below it. */
export function percentile(ascending: readonly number[], percent: number): number {
  const rank = Math.max(1, Math.ceil((percent / 100) * ascending.length));
  const value = ascending[rank - 1];
  if (value === undefined) throw new RangeError('percentile of an empty sample');
  return value;
}

/** Summarises at least one value. */
export function distribution(sample: readonly number[]): Distribution {
  const ascending = sample.toSorted((a, b) => a - b);
  return {
    mean: mean(ascending),
    p50: percentile(ascending, 50),
    p90: percentile(ascending, 90),
    p95: percentile(ascending, 95),
    p99: percentile(ascending, 99),
    max: percentile(ascending, 100),
  };
}

export function mean(sample: readonly number[]): number {
  if (sample.length === 0) throw new RangeError('mean of an empty sample');
  return sample.reduce((sum, value) => sum + value, 0) / sample.length;
}
