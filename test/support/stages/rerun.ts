/** Runs test files again, with other variables. */
import { spawn } from 'node:child_process';
import { repositoryRoot } from '../running/launch.ts';

/** Returns the exit code, which is 0 if the tests passed. `pattern` chooses tests by their names. */
export async function rerunTests(
  files: readonly string[],
  { environment, pattern = '' }: { environment: Readonly<Record<string, string>>; pattern?: string },
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', ...files, '--maxWorkers=1', `--testNamePattern=${pattern}`],
    {
      cwd: repositoryRoot,
      env: { ...process.env, ...environment, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = Promise.withResolvers<number | null>();
  child.once('close', ended.resolve);
  return { code: await ended.promise, output: output.slice(-20_000) };
}
