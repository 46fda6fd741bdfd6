/** The encoder benchmark runs, end to end on few texts. */
import { expect, it } from 'vitest';
import { runBenchmark } from '../support/run-benchmark.ts';

it('measures every side on the same tokens, with vectors that agree', async () => {
  const { report, printed } = await runBenchmark<{
    readonly rows: readonly {
      readonly mix: string;
      readonly contender: string;
      readonly tokens_per_second: { readonly minimum: number };
      readonly agreement_with_ours: object | null;
    }[];
    readonly skipped: readonly { readonly contender: string }[];
    readonly ratios: object;
  }>('encoder', ...'--texts 3 --rounds 2 --mixes queries,documents_short --no-peers'.split(' '));
  const sides = ['maxsimd', 'packed_session_per_core', 'packed_one_session', 'onnxruntime_loop'];
  expect(report.rows.map(({ mix, contender }) => `${mix} ${contender}`)).toEqual(
    ['queries', 'documents_short'].flatMap((mix) => sides.map((side) => `${mix} ${side}`)),
  );
  for (const row of report.rows) expect(row.tokens_per_second.minimum).toBeGreaterThan(0);
  for (const row of report.rows.filter(({ contender }) => contender === 'onnxruntime_loop')) {
    expect(row.agreement_with_ours).toMatchObject({ texts_with_other_tokens: 0 });
    expect(row.agreement_with_ours).toHaveProperty(
      'minimum_cosine',
      expect.toSatisfy((cosine: number) => cosine > 0.99),
    );
  }
  // Mixes that were not run and peers that were left out are said to be so, not counted as met.
  expect(report.ratios).toEqual({ transformers_js: null, packed_onnxruntime: null });
  expect(report.skipped.map(({ contender }) => contender)).toEqual([
    'transformers_js',
    'transformers_js_export_int8',
    'transformers_js_export_f32',
    'sentence_transformers',
  ]);
  expect(printed).toContain('packed_one_session');
}, 120_000);

it('shares the texts among several processes of ours', async () => {
  const mix = ['--mixes', 'documents_short', '--texts', '5', '--rounds', '1', '--processes', '2'];
  const { report } = await runBenchmark<{
    readonly rows: readonly {
      readonly contender: string;
      readonly settings: string;
      readonly agreement_with_ours: { readonly minimum_cosine: number };
    }[];
  }>('encoder', ...mix, '--no-peers');
  const [ours] = report.rows;
  expect(ours).toMatchObject({
    contender: 'maxsimd',
    settings: expect.stringMatching(/^2 processes, each gRPC/) as string,
  });
  const loop = report.rows.find(({ contender }) => contender === 'onnxruntime_loop');
  expect(loop?.agreement_with_ours.minimum_cosine).toBeGreaterThan(0.99);
  const alone = await runBenchmark<{ readonly rows: readonly object[] }>('encoder', ...mix, '--alone');
  expect(alone.report.rows).toMatchObject([{ contender: 'maxsimd' }]);
}, 120_000);
