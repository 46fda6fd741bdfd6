/** The kernel benchmark runs, end to end on few chunks, and reports what it must. */
import { expect, it } from 'vitest';
import { runKernelBench } from '../../bench/kernel/bench.ts';

it('measures every side in every scenario and names every ratio', { timeout: 300_000 }, async () => {
  const report = await runKernelBench({
    dims: [128, 96],
    threads: [1, 2],
    chunks: 60,
    rounds: 2,
    seed: 1,
    bandwidthMebibytes: 16,
    without: ['haswell_f16'],
    command: 'test',
  });
  expect(report.environment).toMatchObject({ command: 'test', threads: [1, 2] });
  const contenders = new Set(report.rows.map(({ contender }) => contender));
  expect([...contenders]).toEqual(
    expect.arrayContaining(['maxsimd_scalar', 'numkong_serial_f32', report.environment.kernel]),
  );
  expect([...contenders].filter((name) => name.includes('haswell_f16'))).toEqual([]);
  // Two dims, two thread counts, three scenarios each.
  expect(report.rows).toHaveLength(contenders.size * 12);
  for (const row of report.rows) {
    expect(row.thousand_chunks_per_second.minimum, row.contender).toBeGreaterThan(0);
    expect(row.thousand_chunks_per_second_wall, row.contender).toBeGreaterThan(0);
  }
  // int8 with a scale per token vector, and the stored floats themselves.
  for (const row of report.rows.filter(({ contender }) => contender.startsWith('maxsimd'))) {
    expect(row.relative_score_error, row.contender).toBeLessThan(2e-3);
    expect(row.top10_overlap, row.contender).toBeGreaterThanOrEqual(0.9);
  }
  expect(Object.keys(report.ratios).toSorted()).toEqual([
    'addon_overhead',
    'avx2_vs_numkong_haswell',
    'hot_vs_numkong_best',
    'memory_vs_numkong_bf16',
    'memory_vs_read_bandwidth',
    'random_vs_numkong_best',
    'vnni_vs_numkong_best_without_amx',
  ]);
  for (const [name, ratio] of Object.entries(report.ratio_details)) {
    if (ratio.value === null) expect(ratio.reason, name).toMatch(/\w/);
    else expect(ratio.value, name).toBeGreaterThan(0);
  }
});
