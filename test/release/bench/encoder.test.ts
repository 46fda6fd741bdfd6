/** The encoder benchmark runs, end to end on few texts. */
import { expect, it } from 'vitest';
import { runBenchmark } from '../../support/run-benchmark.ts';

it('measures every side on the same tokens, with vectors that agree', async () => {
  const { report, printed } = await runBenchmark<{
    readonly rows: readonly {
      readonly contender: string;
      readonly settings: string;
      readonly tokens_per_second: { readonly minimum: number };
      readonly agreement_with_ours: { readonly minimum_cosine: number } | null;
    }[];
    readonly skipped: readonly { readonly contender: string }[];
    readonly ratios: object;
  }>('encoder', ...'--texts 3 --rounds 1 --mixes documents_short --processes 2 --no-peers'.split(' '));
  const sides = ['maxsimd', 'packed_session_per_core', 'packed_one_session', 'onnxruntime_loop'];
  expect(report.rows.map(({ contender }) => contender)).toEqual(sides);
  expect(report.rows[0]!.settings).toMatch(/^2 clients, each gRPC/);
  for (const row of report.rows) expect(row.tokens_per_second.minimum).toBeGreaterThan(0);
  const loop = report.rows.find(({ contender }) => contender === 'onnxruntime_loop');
  // Ours has two bits a component.
  expect(loop?.agreement_with_ours?.minimum_cosine).toBeGreaterThan(0.9);
  // Mixes and peers that were left out are named, and do not count as met.
  expect(report.ratios).toEqual({ transformers_js: null, packed_onnxruntime: null });
  expect(report.skipped.map(({ contender }) => contender)).toEqual([
    'transformers_js',
    'transformers_js_export_int8',
    'transformers_js_export_f32',
    'sentence_transformers',
  ]);
  expect(printed).toContain('packed_one_session');
});

it('measures one encoder process that several clients call', async () => {
  const { report } = await runBenchmark<{
    readonly rows: readonly {
      readonly settings: string;
      readonly tokens_per_second: { readonly minimum: number };
    }[];
  }>('encoder', ...'--texts 4 --rounds 1 --mixes documents_short --clients 2 --alone'.split(' '));
  expect(report.rows).toHaveLength(1);
  expect(report.rows[0]!.settings).toMatch(/^2 clients, each gRPC/);
  expect(report.rows[0]!.tokens_per_second.minimum).toBeGreaterThan(0);
});
