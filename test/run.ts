/**
 * The tests, as steps. Ends with one line, `N passed, N failed, N skipped`, in which each step outside vitest counts as one
 * test.
 *
 * - `npm test`: static checks, then the suites of what a change of the code can break, and beside them the addon's tests and
 *   hostile calls of it under sanitizers.
 * - `npm run test:release` (`--release`): the suites of test/release alone. They pack, install and run what surrounds the code.
 * - `.ci/run` (`--ci`): both, the second only while there is time.
 * - `npm run test:nightly` (`--nightly`): all suites with many more rounds (`test/rounds.ts`), the thread sanitizer,
 *   libFuzzer, and the figures of test/nightly.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { root, runStep, runSteps, staticChecks, type Step, type StepResult } from './check.ts';

const resultsSchema = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
});

const mode = { nightly: false, release: false, ci: false, ...modeOf(process.argv[2]) };
const { nightly } = mode;
/** A run of the continuous integration has 90 minutes. */
const releaseBeforeMs = 45 * 60_000;

function modeOf(argument: string | undefined): object {
  return argument === undefined ? {} : { [argument.slice('--'.length)]: true };
}

const env = nightly ? { TEST_NIGHTLY: '1' } : {};
const sanitizers = nightly ? ['address', 'thread'] : ['address'];
const nativeSteps: readonly Step[] = [
  ...sanitizers.map((sanitizer) => ({
    name: `addon under the ${sanitizer} sanitizer`,
    command: 'node',
    args: ['test/native/sanitizers.ts', sanitizer],
    env,
  })),
  {
    name: 'hostile calls of the addon under sanitizers',
    command: 'node',
    args: ['test/native/calls/sanitized-calls.ts', nightly ? '3600' : '20'],
    env,
  },
  ...(nightly ? [{ name: 'readers under libFuzzer', command: 'node', args: ['test/native/fuzz.ts'] }] : []),
];

const servers: Step = {
  name: 'servers that nodes share',
  command: 'node',
  args: ['deploy/local/install-servers.ts'],
};

function suitesOf(projects: readonly string[]): Suites {
  const name = `suites (${projects.join(', ')})`;
  const resultsFile = path.join(root, 'build', `test-results-${projects.join('-')}.json`);
  const args = [
    'run',
    ...projects.map((project) => `--project=${project}`),
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${resultsFile}`,
    ...(nightly ? ['--exclude=test/nightly/**'] : []),
  ];
  return { name, command: 'vitest', args, env, resultsFile };
}

interface Suites extends Step {
  readonly resultsFile: string;
}

const suites = suitesOf(['unit', 'kernels', 'processes']);
/** The continuous integration has no time for a whole image. */
const releaseSuites: Suites = { ...suitesOf(['release']), env: { ...env, ...(mode.ci && { CI: '1' }) } };

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
  const steps: StepResult[] = [];
  const counts: Counts[] = [];
  if (!mode.release) {
    steps.push(...(await runSteps(staticChecks)));
    // The suites wait much of their time. The sanitizer steps run beside them at low priority.
    const native = runSteps(nativeSteps, true);
    steps.push(await runStep(servers));
    counts.push(await runSuites(suites));
    steps.push(...(await native));
  }
  if (mode.release || nightly || (mode.ci && performance.now() < releaseBeforeMs)) {
    if (mode.release) steps.push(await runStep(servers));
    counts.push(await runSuites(releaseSuites));
  }
  if (nightly) steps.push(await runStep(figures), await runStep(figuresOfThreads));
  for (const { passed } of steps)
    counts.push({ passed: Number(passed), failed: Number(!passed), skipped: 0 });
  const sum = (of: keyof Counts): number => counts.reduce((total, one) => total + one[of], 0);
  process.exitCode = sum('failed') === 0 ? 0 : 1;
  console.log(`${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
}

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A runner that passed no test, or failed without a failed test (a crash, an unhandled error), is one failure. */
async function runSuites(step: Suites): Promise<Counts> {
  mkdirSync(path.dirname(step.resultsFile), { recursive: true });
  rmSync(step.resultsFile, { force: true });
  const run = await runStep(step);
  if (!existsSync(step.resultsFile)) return { passed: 0, failed: 1, skipped: 0 };
  const results = resultsSchema.parse(JSON.parse(readFileSync(step.resultsFile, 'utf8')));
  const { numPassedTests: passed, numFailedTests: failed } = results;
  const isSound = run.passed && passed > 0;
  return {
    passed,
    failed: failed === 0 && !isSound ? 1 : failed,
    skipped: results.numPendingTests + results.numTodoTests,
  };
}
