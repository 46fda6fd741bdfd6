/** The launcher under `npx`, with a program in its place that says what it receives: it ends when npm does, however that ends. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { programVersion } from '../../src/process/installation.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

const launcher = path.resolve(import.meta.dirname, '../../src/bootstrap/launcher.mjs');
const program = `
  process.on('SIGTERM', () => process.exit());
  console.log(process.pid);
  setInterval(() => undefined, 1000);
`;

let directory: string;
beforeAll(async () => {
  directory = await newDirectory();
  const home = path.join(directory, 'node_modules', 'maxsimd');
  for (const folder of ['maxsimd/bin', 'maxsimd/src/cli', '.bin']) {
    await mkdir(path.join(directory, 'node_modules', folder), { recursive: true });
  }
  await writeFile(path.join(directory, 'package.json'), '{}');
  const manifest = { name: 'maxsimd', version: '1.0.0', type: 'module', bin: { maxsimd: 'bin/maxsimd.mjs' } };
  await writeFile(path.join(home, 'package.json'), JSON.stringify(manifest));
  const command = path.join(home, 'bin/maxsimd.mjs');
  await copyFile(launcher, command);
  await chmod(command, 0o755);
  await writeFile(path.join(home, 'src/cli/main.js'), program);
  await symlink('../maxsimd/bin/maxsimd.mjs', path.join(directory, 'node_modules/.bin/maxsimd'));
});

it.each(['SIGTERM', 'SIGHUP', 'SIGKILL'] as const)('ends when npx receives %s', async (signal) => {
  const npx = spawn('npx', ['maxsimd'], { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: npx.stdout }), 'line')) as [string];
  const processId = Number(line);
  onTestFinished(() => {
    if (isRunning(processId)) process.kill(processId, 'SIGKILL');
  });
  npx.kill(signal);
  await expect.poll(() => isRunning(processId)).toBe(false);
});

it('runs the program of a checkout', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [launcher, '--version']);
  expect(stdout.trim()).toBe(programVersion());
});

function isRunning(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}
