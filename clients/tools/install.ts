/** Pinned packages of npm and PyPI in folders under `build/clients`, installed again only when their pins change. */
import { execFile, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isBusy, openLockDatabase } from '../../src/catalog/sqlite/connection.ts';

const root = path.resolve(import.meta.dirname, '../..');
/** Where all of this is installed. */
export const builds = path.join(root, 'build/clients');
const pollMs = 100;

/** The folder with the programs of a `package.json`, by default that of this folder. Rejects with npm's words. */
export async function nodeTools(name = 'node', packages = import.meta.dirname): Promise<string> {
  const folder = path.join(builds, name);
  const lock = readFileSync(path.join(packages, 'package-lock.json'), 'utf8');
  await unlessStamped(folder, lock, async () => {
    for (const file of ['package.json', 'package-lock.json'])
      cpSync(path.join(packages, file), path.join(folder, file));
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], folder);
  });
  return path.join(folder, 'node_modules/.bin');
}

/** The folder with the programs of a virtual environment that holds exactly these packages. Rejects with pip's words. */
export async function pythonEnvironment(name: string, requirementsFile: string): Promise<string> {
  const folder = path.join(builds, name);
  const binaries = path.join(folder, 'bin');
  await unlessStamped(folder, readFileSync(requirementsFile, 'utf8'), async () => {
    await run('python3', ['-m', 'venv', folder], root);
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    await run(path.join(binaries, 'python'), [...install, '--requirement', requirementsFile], root);
  });
  return binaries;
}

/** Why there is no Python for the client, as a reason to skip its tests; `undefined` = there is. */
export function missingPython(): string | undefined {
  const script = 'import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 10) else 1)';
  const { status, error } = spawnSync('python3', ['-c', script]);
  if (error !== undefined) return 'there is no python3';
  if (status !== 0) return 'python3 is older than 3.10, or has no venv';
  const download = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--no-cache-dir', '--retries=1'];
  const index = spawnSync('python3', [...download, '--dest', path.join(builds, 'probe'), 'idna==3.20']);
  return index.status === 0 ? undefined : 'PyPI cannot be reached';
}

export async function unlessStamped(
  folder: string,
  wanted: string,
  install: () => Promise<void>,
): Promise<void> {
  const stamp = path.join(folder, '.installed');
  const isInstalled = (): boolean => existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted;
  if (isInstalled()) return;
  await alone(folder, async () => {
    if (isInstalled()) return;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    await install();
    writeFileSync(stamp, wanted);
  });
}

/** One process at a time: the others wait. The lock is SQLite's, which goes with its process. */
export async function alone<T>(folder: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(path.dirname(folder), { recursive: true });
  const lock = openLockDatabase(`${folder}.lock`, 0);
  const isHeld = (): boolean => {
    try {
      lock.exec('BEGIN EXCLUSIVE');
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw error;
    }
  };
  try {
    while (!isHeld()) await pause(pollMs);
    return await work();
  } finally {
    lock.close();
  }
}

/** Runs a program to its end and resolves to what it printed; rejects with its own words when it fails. */
export async function run(
  program: string,
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, args, {
      cwd,
      env: { ...process.env, ...environment },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  } catch (error) {
    const { message, stdout = '' } = error as Error & { readonly stdout?: string };
    throw new Error(`${message}\n${stdout}`, { cause: error });
  }
}
