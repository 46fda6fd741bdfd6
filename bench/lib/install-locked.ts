/**
 * Installs the peers of a benchmark into a folder beside it, at the exact versions of its lock file and without install scripts.
 * It installs them again only when the lock has changed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Throws npm's message when the installation fails. `size` tells a person how much it is. */
export function installLocked(directory: string, size: string, onProgress: (line: string) => void): void {
  const lock = readFileSync(path.join(directory, 'package-lock.json'), 'utf8');
  const stamp = path.join(directory, 'node_modules', '.installed-lock.json');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  onProgress(`installing the peers (about ${size})`);
  const { status, stderr, error } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: directory,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (status !== 0) throw new Error(`npm ci failed: ${error?.message ?? stderr.trim().split('\n').at(-1)}`);
  writeFileSync(stamp, lock);
}

export function installedVersion(directory: string, name: string): string {
  const file = path.join(directory, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
}
