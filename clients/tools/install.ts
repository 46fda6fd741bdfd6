/** Pinned packages of npm and PyPI in folders under `build/clients`, installed again only when their pins change. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const builds = path.join(root, 'build/clients');

/** The folder with the programs of `clients/tools/package.json`. Throws with npm's words. */
export function nodeTools(): string {
  const folder = path.join(builds, 'node');
  const lock = readFileSync(path.join(import.meta.dirname, 'package-lock.json'), 'utf8');
  unlessStamped(folder, lock, () => {
    for (const file of ['package.json', 'package-lock.json'])
      cpSync(path.join(import.meta.dirname, file), path.join(folder, file));
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], folder);
  });
  return path.join(folder, 'node_modules/.bin');
}

/** The folder with the programs of a virtual environment that holds exactly these packages. Throws with pip's words. */
export function pythonEnvironment(name: string, requirementsFile: string): string {
  const folder = path.join(builds, name);
  const binaries = path.join(folder, 'bin');
  unlessStamped(folder, readFileSync(requirementsFile, 'utf8'), () => {
    run('python3', ['-m', 'venv', folder], root);
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    run(path.join(binaries, 'python'), [...install, '--requirement', requirementsFile], root);
  });
  return binaries;
}

/** Why there is no Python for the client, as a reason to skip its tests; `undefined` = there is. */
export function missingPython(): string | undefined {
  const script = 'import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 10) else 1)';
  const { status, error } = spawnSync('python3', ['-c', script]);
  if (error !== undefined) return 'there is no python3';
  if (status !== 0) return 'python3 is older than 3.10, or has no venv';
  const index = spawnSync('python3', [
    '-m',
    'pip',
    'download',
    '--quiet',
    '--no-deps',
    '--dest',
    builds,
    'idna==3.20',
  ]);
  return index.status === 0 ? undefined : 'PyPI cannot be reached';
}

function unlessStamped(folder: string, wanted: string, install: () => void): void {
  const stamp = path.join(folder, '.installed');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  install();
  writeFileSync(stamp, wanted);
}

/** Runs a program to its end and returns what it printed; throws with its own words when it fails. */
export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, ...environment },
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status === 0) return stdout;
  throw new Error(
    `${path.basename(program)} ${args[0] ?? ''}: ${error?.message ?? ''}\n${stdout}\n${stderr}`,
  );
}
