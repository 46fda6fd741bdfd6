/** Downloads with pip, which knows mirrors, proxies and checksums. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CudaInstallError } from './install.ts';

/** The same wheel for every host: the libraries in it do not depend on the Python of the host. */
const wheel =
  '--platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 ' +
  '--implementation cp --python-version 3.12';

const pipArguments = [
  '-m pip install --quiet --disable-pip-version-check --no-cache-dir',
  '--no-deps --no-compile --only-binary=:all: --require-hashes',
  wheel,
].flatMap((some) => some.split(' '));

/** `python` is a command. When pip fails, the error holds its output. */
export function pipFetch(python: string): (requirements: string, target: string) => void {
  return (requirements, target) => {
    const scratch = mkdtempSync(path.join(tmpdir(), 'maxsimd-cuda-'));
    try {
      const file = path.join(scratch, 'requirements.txt');
      writeFileSync(file, requirements);
      const { status, stderr, error } = spawnSync(
        python,
        [...pipArguments, '--target', target, '--requirement', file],
        { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] },
      );
      if (error !== undefined) {
        throw new CudaInstallError(
          `cannot run ${python}: ${error.message}; a Python 3 with pip is needed (--python)`,
        );
      }
      if (status !== 0)
        throw new CudaInstallError(`pip could not fetch the packages\n${explained(stderr)}${stderr.trim()}`);
    } finally {
      rmSync(scratch, { recursive: true });
    }
  };
}

function explained(stderr: string): string {
  if (/No module named pip/.test(stderr)) return 'this Python has no pip\n';
  if (/HASHES|hashes/.test(stderr)) return 'a download is not what was expected: its checksum differs\n';
  if (/No matching distribution|Could not find a version/.test(stderr))
    return 'the package index cannot be reached, or does not have the version\n';
  if (/connection|resolve|timed out|Network/i.test(stderr)) return 'the package index cannot be reached\n';
  return '';
}
