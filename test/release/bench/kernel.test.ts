/** The kernel benchmark runs, end to end on few chunks, and reports what it must. */
import { expect, it } from 'vitest';
import { runBenchmark } from '../../support/run-benchmark.ts';

interface Report {
  readonly environment: { readonly kernel: string };
  readonly rows: readonly {
    readonly contender: string;
    readonly thousand_chunks_per_second: { readonly minimum: number };
    readonly thousand_chunks_per_second_wall: number;
    readonly relative_score_error: number;
    readonly top10_overlap: number;
  }[];
  readonly ratios: object;
  readonly ratio_details: Readonly<
    Record<string, { readonly value: number | null; readonly reason?: string }>
  >;
}

it('measures every side in every scenario and names every ratio', async () => {
  const args = '--dims 128 --bits 8,2 --threads 1 --chunks 60 --rounds 1'.split(' ');
  const { report } = await runBenchmark<Report>('kernel', ...args);
  const contenders = new Set(report.rows.map(({ contender }) => contender));
  expect([...contenders]).toEqual(
    expect.arrayContaining(['maxsimd_scalar', 'numkong_serial_f32', report.environment.kernel]),
  );
  // Two scenarios.
  expect(report.rows).toHaveLength(contenders.size * 2);
  for (const row of report.rows) {
    expect(row.thousand_chunks_per_second.minimum, row.contender).toBeGreaterThan(0);
    expect(row.thousand_chunks_per_second_wall, row.contender).toBeGreaterThan(0);
  }
  // int8 with a scale per token vector, and the stored floats themselves.
  const eightBits = report.rows.filter(({ contender }) => /^maxsimd_(?!.*bit$)/.test(contender));
  for (const row of eightBits) {
    expect(row.relative_score_error, row.contender).toBeLessThan(2e-3);
    expect(row.top10_overlap, row.contender).toBeGreaterThanOrEqual(0.9);
  }
  const twoBits = report.rows.filter(({ contender }) => contender.endsWith('_2bit'));
  expect(twoBits).toHaveLength(eightBits.length);
  for (const row of twoBits) expect(row.relative_score_error, row.contender).toBeLessThan(0.1);
  expect(Object.keys(report.ratios).toSorted()).toEqual([
    'addon_overhead',
    'avx2_vs_numkong_haswell',
    'hot_vs_numkong_best',
    'memory_vs_numkong_bf16',
    'vnni_vs_numkong_best_without_amx',
  ]);
  for (const [name, ratio] of Object.entries(report.ratio_details)) {
    if (ratio.value === null) expect(ratio.reason, name).toMatch(/\w/);
    else expect(ratio.value, name).toBeGreaterThan(0);
  }
});
