/** The kernel benchmark runs, end to end on few chunks, and reports what it must. */
import { beforeAll, expect, it } from 'vitest';
import path from 'node:path';
import { runOnAvx2Cpu, whyNoAvx2Cpu } from '../support/machine/avx2-cpu.ts';
import { root, runBenchmark } from '../support/run-benchmark.ts';

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

let whyNoCpu: string | undefined;
beforeAll(() => {
  whyNoCpu = whyNoAvx2Cpu();
}, 900_000);

it('measures every side in every scenario and names every ratio', { timeout: 300_000 }, async () => {
  const { report } = await runBenchmark<Report>(
    'kernel',
    ...'--chunks 60 --rounds 2 --bandwidth-mib 16 --without haswell_f16'.split(' '),
  );
  expect(report.environment).toMatchObject({
    command: expect.stringContaining('kernel --chunks 60') as string,
    threads: [1, 2],
  });
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

it(
  'on a CPU with no more than AVX2 the sides that it supports run to the end',
  { timeout: 300_000 },
  (context) => {
    context.skip(whyNoCpu !== undefined, whyNoCpu);
    const sizes = ['dim', 40, 'query-rows', 2, 'chunks', 2, 'hot', 2, 'rounds', 1, 'bandwidth-mib', 1];
    const args = sizes.map((item) => (typeof item === 'string' ? `--${item}` : String(item)));
    const { contenders } = JSON.parse(
      runOnAvx2Cpu(path.join(root, 'build/bench-kernel/kernel_bench'), args),
    ) as {
      contenders: { name: string }[];
    };
    const names = contenders.map(({ name }) => name).filter((name) => !name.startsWith('gemm'));
    expect(names).toEqual([
      ...['avx2', 'scalar'].map((name) => `maxsimd_${name}`),
      ...['serial_f32', 'serial_bf16', 'haswell_f32', 'haswell_bf16', 'haswell_f16'].map(
        (name) => `numkong_${name}`,
      ),
    ]);
  },
);
