/**
 * Builds the addon's core without Node under a sanitizer and runs its stand-alone tests: every suite under
 * `address` (with undefined behaviour and leaks), the concurrent one under `thread`.
 * `node test/native/sanitizers.ts address|thread`; `MAXSIMD_TEST_SEED` repeats a run. Exits with 1 on any finding.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');

const runs: Readonly<Record<string, { readonly sanitizers: string; readonly suites: readonly string[] }>> = {
  address: { sanitizers: 'address,undefined', suites: [] }, // all
  thread: { sanitizers: 'thread', suites: ['concurrency'] },
};

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', cwd: root });
  if (error) throw error;
  if (status !== 0) process.exit(1);
}

const [name = ''] = process.argv.slice(2);
const chosen = runs[name];
if (chosen === undefined)
  throw new Error(`no sanitizer is called ${JSON.stringify(name)}: address or thread`);
const build = path.join(root, 'build', 'sanitize', name);
mkdirSync(build, { recursive: true });
run('cmake', [
  '-S',
  root,
  '-B',
  build,
  '-DMAXSIMD_NATIVE_TESTS=ON',
  `-DMAXSIMD_SANITIZE=${chosen.sanitizers}`,
]);
run('cmake', ['--build', build, '--parallel', String(availableParallelism())]);
run(path.join(build, 'native', 'test', 'maxsimd_test'), chosen.suites);
