/** The GPU benchmark, dry: on the CPU graph it runs end to end and finds nothing to complain of. */
import { describe, expect, it } from 'vitest';
import { cudaProblem } from '../../../src/encoder/inference/cuda/cuda-library.ts';
import { runBenchmark, runServiceBenchmark } from '../../support/run-benchmark.ts';

interface Report {
  readonly agreement_with_cpu_graph: { readonly minimum_cosine: number };
  readonly nodes: readonly { readonly provider: string; readonly nodes: number }[];
  readonly rows: readonly { readonly outputs: string; readonly tokens_per_second: number }[];
}

const run = (device: string) =>
  runBenchmark<Report>('gpu', ...`--rounds 1 --batch-tokens 272 --device ${device}`.split(' '));

describe('the GPU benchmark', () => {
  it('compares a device with the CPU and measures it with each set of outputs', async () => {
    const { report, printed } = await run('cpu');
    expect(report).toMatchObject({
      nodes_elsewhere: null,
      alone_and_in_batch: { differing_share: 0, steps_max: 0 },
    });
    expect(report.agreement_with_cpu_graph.minimum_cosine).toBeGreaterThan(0.9999);
    expect(report.rows.map(({ outputs }) => outputs)).toEqual(['f32', 'weights only']);
    expect(new Set(report.nodes.map(({ provider }) => provider))).toEqual(new Set(['CPUExecutionProvider']));
    for (const row of report.rows) expect(row.tokens_per_second).toBeGreaterThan(0);
    expect(printed).toContain('nodes on another device: none');
    expect(printed).toContain('--batch-tokens 272 is');
  });

  it('refuses a GPU that is not there, and says why', async () => {
    const problem = cudaProblem();
    if (problem === undefined) expect((await run('cuda:0')).report.rows).toHaveLength(2);
    else await expect(run('cuda:0')).rejects.toThrow(problem);
  });
});

it('the benchmark of first runs times every shape three times, and knows which the warm-up had run', async () => {
  const { report, printed } = await runServiceBenchmark<{
    readonly warm_up_ms: number | null;
    readonly totals: { readonly warmed: object; readonly not_warmed: object };
    readonly rows: readonly { readonly first_ms: number; readonly third_ms: number }[];
  }>('first-runs', '--device', 'cpu', '--batch-tokens', '128');
  // Queries of 16 positions in batches of 1 to 32; documents of 16 in 1, 2, 4, 8 and of 32 in 1, 2, 4. All but 32 queries are warm.
  expect(report.rows).toHaveLength(6 + 4 + 3);
  for (const row of report.rows) expect(Math.min(row.first_ms, row.third_ms)).toBeGreaterThan(0);
  expect(report.totals).toMatchObject({ warmed: { shapes: 12 }, not_warmed: { shapes: 1 } });
  expect(report.warm_up_ms).toBeGreaterThan(0);
  expect(printed).toMatch(/warm-up \d+ batches/);
});
