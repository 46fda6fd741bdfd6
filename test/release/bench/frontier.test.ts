/** The frontier benchmark runs, end to end on a small synthetic corpus. */
import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { root, runBenchmark } from '../../support/run-benchmark.ts';

interface Report {
  readonly corpora: readonly {
    readonly points: readonly (Readonly<Record<'variant' | 'state' | 'kernel' | 'settings', string>> &
      Readonly<Record<'recall_at_10' | 'p50_ms' | 'p99_ms' | 'threads', number>>)[];
  }[];
}

it('measures kernels, threads and states beside another checkout', async () => {
  const directory = await newDirectory();
  const older = path.join(directory, 'older');
  mkdirSync(older);
  for (const part of ['src', 'bench']) symlinkSync(path.join(root, part), path.join(older, part));
  const options =
    '--chunks 1000 --mean-rows 24 --queries 4 --rounds 1 --candidate-k 200 --threads 1 --kernels scalar,auto';
  const states = ['--states', 'static,1/10', '--against', older, '--cache', directory];
  const { report, printed } = await runBenchmark<Report>('frontier', ...options.split(' '), ...states);
  const { points } = report.corpora[0]!;
  expect(points).toHaveLength(2 * 2 * 2);
  expect(new Set(points.map(({ variant }) => variant))).toEqual(new Set(['maxsimd', 'maxsimd of older']));
  expect(new Set(points.map(({ state }) => state))).toEqual(new Set(['static', '1/10']));
  expect(points.some(({ kernel }) => kernel === 'scalar')).toBe(true);
  for (const point of points) {
    expect(point.recall_at_10, JSON.stringify(point)).toBeGreaterThan(0.5);
    expect(point.p99_ms).toBeGreaterThanOrEqual(point.p50_ms);
  }
  expect(printed).toContain('p50 ms at 0.98');
});
