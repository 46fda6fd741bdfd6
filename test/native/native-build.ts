/** The addon's core without Node, and its stand-alone tests, built under `build/sanitize`. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';

export const repositoryRoot = path.resolve(import.meta.dirname, '../..');

/** The folder of the test programs. Ends the process where a step fails. */
export function buildNativeTests(name: string, sanitizers: string, options: readonly string[] = []): string {
  const build = path.join(repositoryRoot, 'build', 'sanitize', name);
  mkdirSync(build, { recursive: true });
  const definitions = ['-DMAXSIMD_NATIVE_TESTS=ON', `-DMAXSIMD_SANITIZE=${sanitizers}`, ...options];
  run('cmake', ['-S', repositoryRoot, '-B', build, ...definitions]);
  run('cmake', ['--build', build, '--parallel', String(availableParallelism())]);
  return path.join(build, 'native', 'test');
}

/** Runs a program to its end; ends the process where it fails. */
export function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): void {
  const { status, error } = spawnSync(command, args, {
    stdio: 'inherit',
    cwd: repositoryRoot,
    env: { ...process.env, ...env },
  });
  if (error) throw error;
  if (status !== 0) process.exit(1);
}
