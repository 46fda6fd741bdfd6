/** Tiny runs of the benchmarks that work in their own process, so that they keep running. */
import { expect, it } from 'vitest';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { runBenchmark } from '../support/run-benchmark.ts';

interface TextCost {
  readonly text: string;
  readonly ns_per_byte: number;
  readonly growth: number;
}

it('a byte of every part of Unicode has its cost', async () => {
  const { report, printed } = await runBenchmark<
    Readonly<Record<'ordinary' | 'hostile' | 'rows' | 'marks', readonly TextCost[]>>
  >('tokenizer', ...'--kib 1 --processor-ms 1 --row-length 4096'.split(' '));
  const groups = [report.ordinary, report.hostile, report.rows, report.marks];
  for (const { ns_per_byte: cost, growth } of groups.flat()) {
    expect(cost).toBeGreaterThan(0);
    expect(growth).toBeGreaterThan(0);
  }
  expect(report.rows.map(({ text }) => text)).toEqual(
    expect.arrayContaining(['U+0000 to U+0fff', 'U+e0000 to U+e0fff']),
  );
  expect(report.marks.length).toBeGreaterThan(5);
  expect(printed).toContain('the slowest');
}, 120_000);

it('an index is opened, searched cold and searched while it is rewritten', async () => {
  const { report } = await runBenchmark<{
    readonly segments: readonly { readonly records: number }[];
    readonly open: Readonly<Record<'warm' | 'cold', { readonly median: number }>>;
    readonly cold_search: Readonly<Record<'cold_ms' | 'warm_ms', { readonly median: number }>>;
    readonly merging: { readonly merges: number; readonly p99_ratio: number };
  }>('store', ...'--documents 500 --rounds 1 --rows 8'.split(' '));
  expect(report.segments.reduce((sum, { records }) => sum + records, 0)).toBe(500);
  const times = [report.open.warm, report.open.cold, report.cold_search.cold_ms, report.cold_search.warm_ms];
  for (const { median } of times) expect(median).toBeGreaterThan(0);
  expect(report.merging.merges).toBe(1);
  expect(report.merging.p99_ratio).toBeGreaterThan(0);
}, 120_000);

it('a data directory is copied, backed up and restored, and searched meanwhile', async () => {
  const { report } = await runBenchmark<{
    readonly bytes: number;
    readonly megabytes_per_second: Readonly<
      Record<'copy' | 'backup' | 'restore', { readonly median: number }>
    >;
    readonly searches: { readonly p99_ratio: { readonly median: number } };
  }>('backup', ...'--documents 300 --rounds 1 --rows 8'.split(' '));
  expect(report.bytes).toBeGreaterThan(300 * 8 * 128);
  for (const { median } of Object.values(report.megabytes_per_second)) expect(median).toBeGreaterThan(0);
  expect(report.searches.p99_ratio.median).toBeGreaterThan(0);
}, 120_000);

it('searches of two processes are compared while the memory of one is bounded', async () => {
  const cache = await newDirectory();
  const { report } = await runBenchmark<{
    readonly index_bytes: number;
    readonly steps: readonly { readonly share: number; readonly bounded: { readonly p50_ms: number } }[];
  }>('memory', ...'--chunks 300 --mean-rows 8 --queries 3 --shares 100,50'.split(' '), '--cache', cache);
  expect(report.index_bytes).toBeGreaterThan(0);
  expect(report.steps.map(({ share }) => share)).toEqual([100, 50]);
  for (const { bounded } of report.steps) expect(bounded.p50_ms).toBeGreaterThan(0);
}, 120_000);

it('placement is simulated until nodes have been lost and replaced', async () => {
  const { report, printed } = await runBenchmark<{
    readonly rows: readonly {
      readonly balance: string;
      readonly steady: { readonly requests: number; readonly cold: number };
    }[];
  }>(
    'placement',
    ...'--tenants 500 --chunks 1000 --nodes 3 --skews 1 --cache-gib 1 --open-max 4'.split(' '),
    ...'--points 16 --rate 100 --warm-up 5 --seconds 5'.split(' '),
  );
  expect(report.rows.map(({ balance }) => balance)).toEqual(['index', 'bounded', 'random']);
  for (const { steady } of report.rows) {
    expect(steady.requests).toBeGreaterThan(0);
    expect(steady.cold).toBeGreaterThan(0);
  }
  expect(printed).toContain('replaced: 60 to 300 s');
}, 120_000);
