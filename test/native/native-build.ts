/** The addon and the stand-alone tests of its core, built under sanitizers in `build/sanitize`. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { isNightly } from '../rounds.ts';

export const repositoryRoot = path.resolve(import.meta.dirname, '../..');

export const addressSanitizers = 'address,undefined';

/** The checks of undefined behaviour quadruple the time to compile the unrolled kernels, so they are left to the night. */
function kernelSanitizers(sanitizers: string): string {
  return sanitizers === addressSanitizers && !isNightly() ? 'address' : sanitizers;
}

/** The folder of the test programs. Ends the process where a step fails. */
export function buildNativeTests(name: string, sanitizers: string, options: readonly string[] = []): string {
  return path.join(build(name, sanitizers, options, 'all'), 'native', 'test');
}

/** The addon with the sanitizers of addresses and of undefined behaviour. Ends the process where a step fails. */
export function buildSanitizedAddon(): string {
  return path.join(build('address', addressSanitizers, [], 'maxsimd'), 'Release', 'maxsimd.node');
}

function build(name: string, sanitizers: string, options: readonly string[], target: string): string {
  const directory = path.join(repositoryRoot, 'build', 'sanitize', name);
  mkdirSync(directory, { recursive: true });
  const definitions = [
    '-DMAXSIMD_NATIVE_TESTS=ON',
    `-DMAXSIMD_SANITIZE=${sanitizers}`,
    `-DMAXSIMD_SANITIZE_KERNELS=${kernelSanitizers(sanitizers)}`,
    ...options,
  ];
  run('cmake', ['-S', repositoryRoot, '-B', directory, ...definitions]);
  const parallel = ['--parallel', String(availableParallelism())];
  run('cmake', ['--build', directory, '--target', target, ...parallel]);
  return directory;
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
