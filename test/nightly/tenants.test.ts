/**
 * The requests of one tenant beside the dearest legal requests of another one: `npm run bench -- tenants` with the default model,
 * with one thread of the API and with three. A ratio is that of the calmest of several rounds, each beside the quiet round before
 * it, so other work on the machine is in both.
 */
import { afterAll, expect, it } from 'vitest';
import { rounds } from '../rounds.ts';
import { runBenchmark } from '../support/run-benchmark.ts';

/** Seconds on a busy machine say little, so the short form only shows that everybody is answered. */
const timesMax = {
  p50: rounds({ short: Infinity, nightly: 3 }),
  p99: rounds({ short: Infinity, nightly: 4 }),
};
const scale = {
  rounds: rounds({ short: 1, nightly: 3 }),
  seconds: rounds({ short: 1, nightly: 10 }),
  'wide-documents': rounds({ short: 100, nightly: 10_000 }),
  'upload-texts': rounds({ short: 2, nightly: 50 }),
  'exact-documents': rounds({ short: 10, nightly: 400 }),
  'small-indexes': rounds({ short: 3, nightly: 262 }),
};

const said: string[] = [];
afterAll(() => console.log(said.join('\n')));

it.each([1, 3])('leave others their share, with %i threads of the API', async (threads) => {
  const options = Object.entries({ ...scale, threads }).map(([name, value]) => `--${name}=${value}`);
  const { report, printed } = await runBenchmark<{
    readonly cells: readonly {
      readonly attack: string;
      readonly victim: string;
      readonly failed: number;
      readonly ratios: Readonly<Record<'p50' | 'p99', number>>;
    }[];
  }>('tenants', ...options);
  said.push(printed);
  expect(report.cells.length).toBeGreaterThan(0);
  const beyond = report.cells.filter(
    ({ failed, ratios }) => failed > 0 || ratios.p50 > timesMax.p50 || ratios.p99 > timesMax.p99,
  );
  expect(beyond).toEqual([]);
});
