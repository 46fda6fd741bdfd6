/** Builds the addon of test/native/kernels/kernel-shapes.test.ts before it runs, because a unit test starts no process. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');

export function setup(): void {
  const cmake = path.join(root, 'node_modules/.bin/cmake-js');
  const { status, stdout, stderr } = spawnSync(cmake, ['build', '--target', 'kernel_shapes'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`kernel_shapes cannot be built\n${stdout}\n${stderr}`);
}
