/** Static checks: types, lint, format. Each is one named step for `run.ts`; run alone by `npm run check`. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';

export interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface StepResult {
  readonly name: string;
  readonly passed: boolean;
}

export const root = path.resolve(import.meta.dirname, '..');

export const staticChecks: readonly Step[] = [
  { name: 'generated types', command: 'npm', args: ['run', '--silent', 'types'] },
  { name: 'types', command: 'tsc', args: ['-p', '.'] },
  { name: 'types of the console', command: 'tsc', args: ['-p', 'src/console'] },
  { name: 'lint', command: 'oxlint', args: ['--type-aware'] },
  { name: 'format', command: 'oxfmt', args: ['--check', '.'] },
];

/** Runs a step with its output shown; a step that cannot start has failed. */
export function runStep(step: Step): StepResult {
  const started = performance.now();
  const result = spawnSync(step.command, step.args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      ...step.env,
      PATH: `${path.join(root, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
    },
  });
  const passed = result.status === 0;
  console.log(
    `${passed ? 'ok  ' : 'FAIL'} ${step.name} (${((performance.now() - started) / 1000).toFixed(1)} s)`,
  );
  return { name: step.name, passed };
}

if (import.meta.main) {
  const failed = staticChecks.map(runStep).filter((result) => !result.passed);
  process.exitCode = failed.length === 0 ? 0 : 1;
}
