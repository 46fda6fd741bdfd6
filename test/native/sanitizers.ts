/**
 * Builds the addon's core without Node under sanitizers and runs its stand-alone tests: every suite under
 * the address and undefined-behaviour sanitizers (leaks included), the concurrent one under the thread
 * sanitizer. `node test/native/sanitizers.ts`; `MAXSIMD_TEST_SEED` repeats a run. Exits with 1 on any finding.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');

const runs = [
  {
    directory: 'address',
    sanitizers: 'address,undefined',
    suites: [], // all
  },
  { directory: 'thread', sanitizers: 'thread', suites: ['concurrency'] },
] as const;

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', cwd: root });
  if (error) throw error;
  if (status !== 0) process.exit(1);
}

for (const { directory, sanitizers, suites } of runs) {
  const build = path.join(root, 'build', 'sanitize', directory);
  mkdirSync(build, { recursive: true });
  run('cmake', ['-S', root, '-B', build, '-DMAXSIMD_NATIVE_TESTS=ON', `-DMAXSIMD_SANITIZE=${sanitizers}`]);
  run('cmake', ['--build', build, '--parallel', String(availableParallelism())]);
  run(path.join(build, 'native', 'test', 'maxsimd_test'), suites);
}
