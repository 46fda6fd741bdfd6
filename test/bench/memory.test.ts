/** A tiny run of the benchmark of bounded memory, so that it keeps running. */
import { expect, it } from 'vitest';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { runBenchmark } from '../support/run-benchmark.ts';

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
