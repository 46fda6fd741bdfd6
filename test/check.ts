/** Static checks: types, lint, format. Each is one named step for `run.ts`; run alone by `npm run check`. */
import { spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
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
  { name: 'types of the TypeScript client', command: 'tsc', args: ['-p', 'clients/typescript', '--noEmit'] },
  { name: 'lint', command: 'oxlint', args: ['--type-aware'] },
  { name: 'format', command: 'oxfmt', args: ['--check', '.'] },
];

/**
 * Runs a step; one that cannot start has failed. Its output is shown as it comes, or, of a step that runs beside others at the
 * lowest priority, once it has ended.
 */
export async function runStep(step: Step, beside = false): Promise<StepResult> {
  const started = performance.now();
  const child = spawn(step.command, step.args, {
    cwd: root,
    stdio: ['ignore', ...(beside ? (['pipe', 'pipe'] as const) : (['inherit', 'inherit'] as const))],
    env: {
      ...process.env,
      ...step.env,
      PATH: `${path.join(root, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
    },
  });
  if (beside && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => output.push(part));
  const passed = await new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code === 0));
  });
  process.stdout.write(Buffer.concat(output));
  console.log(
    `${passed ? 'ok  ' : 'FAIL'} ${step.name} (${((performance.now() - started) / 1000).toFixed(1)} s)`,
  );
  return { name: step.name, passed };
}

/** One after the other. */
export async function runSteps(steps: readonly Step[], beside = false): Promise<readonly StepResult[]> {
  const results: StepResult[] = [];
  for (const step of steps) results.push(await runStep(step, beside));
  return results;
}

if (import.meta.main) {
  const results = await runSteps(staticChecks);
  process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
}
