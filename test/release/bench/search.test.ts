/** The search benchmark runs, end to end on a small synthetic corpus. */
import { expect, it } from 'vitest';
import { runBenchmark } from '../../support/run-benchmark.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

type Row = Readonly<Record<'variant' | 'state' | 'active_segment', string>> &
  Readonly<
    Record<
      'recall_at_10' | 'recall_at_100' | 'p50_ms' | 'p99_ms' | 'qps' | 'derived_bytes_per_chunk' | 'chunks',
      number
    >
  >;

it('measures every state against an exhaustive scan', async () => {
  const sizes = '--chunks 2000 --mean-rows 24 --queries 4 --searches 4 --budget-ms 10 --threads 2';
  const cache = ['--cache', await newDirectory()];
  const { report, printed } = await runBenchmark<{
    readonly rows: readonly Row[];
    readonly skipped: readonly { readonly variant: string }[];
  }>('search', ...sizes.split(' '), ...cache);
  const states = report.rows.map((row) => `${row.variant} ${row.state} ${row.active_segment}`);
  expect(new Set(states)).toEqual(
    new Set([
      'maxsimd static empty',
      'exhaustive static empty',
      'maxsimd filtered empty',
      'maxsimd where filtered empty',
      'maxsimd static half',
      'maxsimd static full',
      'maxsimd churned empty',
    ]),
  );
  for (const row of report.rows) {
    expect(row.recall_at_10, JSON.stringify(row)).toBeGreaterThan(0.7);
    expect(row.recall_at_100).toBeGreaterThan(0.5);
    expect(row.p50_ms).toBeGreaterThan(0);
    expect(row.p99_ms).toBeGreaterThanOrEqual(row.p50_ms);
    expect(row.qps).toBeGreaterThan(0);
    expect(row.derived_bytes_per_chunk).toBeGreaterThan(0);
  }
  expect(report.rows.find((row) => row.variant === 'exhaustive')).toMatchObject({
    recall_at_10: 1,
    recall_at_100: 1,
  });
  expect(report.rows.find((row) => row.state === 'churned')?.chunks).toBeLessThan(0.85 * 2_000);
  // The report names the parts that were not measured.
  expect(report.skipped.map(({ variant }) => variant)).toEqual(
    [1_000, 10_000, 100_000].map((selectivity) => `maxsimd filtered, 1/${selectivity}`),
  );
  expect(printed).toContain('| 2000 | maxsimd | filtered, 1/100 | 200 |');
});

it('compares searches with and without measuring', async () => {
  const sizes = '--chunks 2000 --clients 1 --rounds 1 --cache'.split(' ');
  const { report } = await runBenchmark<{
    readonly rows: readonly {
      readonly side: string;
      readonly rounds: readonly Readonly<Record<'p50' | 'p99' | 'a_second' | 'measured', number>>[];
    }[];
  }>('measuring', ...sizes, await newDirectory());
  expect(report.rows.map(({ side }) => side)).toEqual(['without', 'new', 'settled']);
  const [without, isNew] = report.rows.map(({ rounds }) => rounds[0]!);
  expect(without!.measured).toBe(0);
  expect(isNew!.measured).toBeGreaterThan(0);
  expect(isNew!.p99).toBeGreaterThanOrEqual(isNew!.p50);
  expect(isNew!.a_second).toBeGreaterThan(0);
});
