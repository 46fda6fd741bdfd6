/**
 * `npm test`: static checks, then every vitest suite, and beside them the addon's tests and hostile calls of it under
 * sanitizers. Ends with one line, `N passed, N failed, N skipped`, in which each step outside vitest counts as one test.
 * `npm run test:nightly` gives `--nightly`: the same suites with many more rounds (`test/rounds.ts`), the
 * thread sanitizer, libFuzzer, and the figures of test/nightly.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { root, runStep, runSteps, staticChecks, type Step } from './check.ts';

const resultsFile = path.join(root, 'build', 'test-results.json');
const resultsSchema = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
});

const nightly = process.argv.includes('--nightly');

const sanitizers = nightly ? ['address', 'thread'] : ['address'];
const nativeSteps: readonly Step[] = [
  ...sanitizers.map((sanitizer) => ({
    name: `addon under the ${sanitizer} sanitizer`,
    command: 'node',
    args: ['test/native/sanitizers.ts', sanitizer],
  })),
  {
    name: 'hostile calls of the addon under sanitizers',
    command: 'node',
    args: ['test/native/calls/sanitized-calls.ts', nightly ? '3600' : '20'],
  },
  ...(nightly ? [{ name: 'readers under libFuzzer', command: 'node', args: ['test/native/fuzz.ts'] }] : []),
];

const servers: Step = {
  name: 'servers that nodes share',
  command: 'node',
  args: ['deploy/local/install-servers.ts'],
};

const suites: Step = {
  name: 'suites',
  command: 'vitest',
  args: [
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${resultsFile}`,
    ...(nightly ? ['--exclude=test/nightly/**'] : []),
  ],
  env: nightly ? { TEST_NIGHTLY: '1' } : {},
};

/** They compare times, so they run one after another, and nothing beside them. */
const figures: Step = {
  name: 'figures of the night',
  command: 'vitest',
  args: ['run', '--maxWorkers=1', 'test/nightly'],
  env: { TEST_NIGHTLY: '1' },
};
const figuresOfThreads: Step = {
  ...figures,
  name: 'figures with three threads of the API',
  args: ['run', '--maxWorkers=1', 'test/nightly/hostile.test.ts', 'test/nightly/event-loops.test.ts'],
  env: { ...figures.env, MAXSIMD_API_THREADS: '3' },
};

await main();

async function main(): Promise<void> {
  mkdirSync(path.dirname(resultsFile), { recursive: true });
  rmSync(resultsFile, { force: true });
  const before = await runSteps(staticChecks);
  // The suites wait much of their time. The sanitizer steps run beside them at low priority.
  const native = runSteps(nativeSteps, true);
  const installed = await runStep(servers);
  const suiteRun = await runStep(suites);
  const steps = [...before, installed, ...(await native)];
  if (nightly) steps.push(await runStep(figures), await runStep(figuresOfThreads));
  const counts = existsSync(resultsFile)
    ? resultsSchema.parse(JSON.parse(readFileSync(resultsFile, 'utf8')))
    : { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0 };
  const stepsFailed = steps.filter((step) => !step.passed).length;
  // A runner that failed without a failed test (a crash, an unhandled error) is a failure of its own.
  const runnerFailed = !suiteRun.passed && counts.numFailedTests === 0 ? 1 : 0;
  const passed = counts.numPassedTests + steps.length - stepsFailed;
  const failed = counts.numFailedTests + stepsFailed + runnerFailed;
  const skipped = counts.numPendingTests + counts.numTodoTests;
  process.exitCode = failed === 0 && counts.numPassedTests > 0 ? 0 : 1;
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
}
