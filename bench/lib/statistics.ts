/** Order statistics of small samples. */

/** Linear interpolation between closest ranks, `fraction` in 0..1; NaN for no values. */
export function quantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  if (sorted.length === 0) return Number.NaN;
  const position = fraction * (sorted.length - 1);
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/** `percentiles(values, 50, 99)` is `{ p50, p99 }`. */
export function percentiles<Of extends number>(
  values: readonly number[],
  ...wanted: readonly Of[]
): Readonly<Record<`p${Of}`, number>> {
  const found = wanted.map((percent) => [`p${percent}`, quantile(values, percent / 100)]);
  return Object.fromEntries(found) as Record<`p${Of}`, number>;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Element-wise a / b of samples taken in the same rounds. */
export function pairedRatios(a: readonly number[], b: readonly number[]): readonly number[] {
  return a.map((value, index) => value / (b[index] ?? Number.NaN));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** NaN for no values. */
export function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

/** The largest; -Infinity for no values. Takes any number of them, which the arguments of `Math.max` do not. */
export function maximum(values: readonly number[]): number {
  return values.reduce((largest, value) => Math.max(largest, value), -Infinity);
}

/** The smallest; Infinity for no values. */
export function minimum(values: readonly number[]): number {
  return values.reduce((smallest, value) => Math.min(smallest, value), Infinity);
}

export interface Spread {
  readonly median: number;
  readonly minimum: number;
  readonly maximum: number;
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), minimum: minimum(values), maximum: maximum(values) };
}
