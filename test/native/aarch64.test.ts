/**
 * The kernels of 64-bit Arm without such a machine: kernels and their tests compiled with a cross compiler and
 * run under emulation of a CPU with SDOT. The cross compiler and the emulator are installed where they are missing.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { installMissingTools } from '../../deploy/local/debian-packages.ts';

const root = path.resolve(import.meta.dirname, '../..');
const native = path.join(root, 'native');
const compiler = 'aarch64-linux-gnu-g++';
const emulator = 'qemu-aarch64';

let whyNot: string | undefined;
beforeAll(() => {
  whyNot = installMissingTools({ [compiler]: 'g++-aarch64-linux-gnu', [emulator]: 'qemu-user' });
}, 900_000);

function run(command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): string {
  const { status, signal, stdout, stderr } = spawnSync(command, args, {
    cwd: native,
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  });
  expect(`${status ?? signal}`, `${command}\n${stdout}\n${stderr}`).toBe('0');
  return stdout;
}

it('the NEON kernel agrees with the reference under emulation', (context) => {
  context.skip(whyNot !== undefined, `no cross compiler or emulator: ${whyNot}`);
  const directory = path.join(root, 'build', 'aarch64');
  mkdirSync(directory, { recursive: true });
  const program = path.join(directory, 'kernels_test');
  const sources = ['kernels', 'test'].flatMap((folder) =>
    readdirSync(path.join(native, folder), { recursive: true, encoding: 'utf8' })
      .filter(
        (name) =>
          name.endsWith('.cpp') && (folder === 'kernels' || /^(kernels_|main)/.test(path.basename(name))),
      )
      .map((name) => path.join(folder, name)),
  );
  const flags = ['-std=c++20', '-O2', '-ffp-contract=off', '-Wall', '-Wextra', '-Werror', '-static', '-I.'];
  run(compiler, [...flags, ...sources, path.join('files', 'crc32c.cpp'), '-o', program]);
  // An emulated instruction costs some ten real ones: a tenth of the random rounds.
  const output = run(emulator, ['-cpu', 'max', program, 'kernels'], { MAXSIMD_TEST_SHARE: '0.1' });
  expect(output).toContain('compared neon');
  expect(output).toMatch(/\d+ passed/);
});
