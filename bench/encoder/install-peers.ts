/**
 * Installs what the benchmark compares with, into a folder of its own beside the benchmark: at the exact versions of its
 * lock file, without install scripts, and again only when the lock has changed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const peersDirectory = path.join(import.meta.dirname, 'peers');

export interface PeerVersions {
  readonly transformers: string;
  /** Of the runtime that it brings. */
  readonly onnxruntime: string;
}

/** Versions of what is installed; throws, with npm's words, when it cannot be. */
export function installPeers(onProgress: (line: string) => void): PeerVersions {
  const lock = readFileSync(path.join(peersDirectory, 'package-lock.json'), 'utf8');
  const stamp = path.join(peersDirectory, 'node_modules', '.installed-lock.json');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== lock) {
    onProgress('installing the peers (about 0.5 GB)');
    const { status, stderr, error } = spawnSync(
      'npm',
      ['ci', '--ignore-scripts', '--no-audit', '--no-fund'],
      {
        cwd: peersDirectory,
        encoding: 'utf8',
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    if (status !== 0) throw new Error(`npm ci failed: ${error?.message ?? stderr.trim().split('\n').at(-1)}`);
    writeFileSync(stamp, lock);
  }
  return { transformers: versionOf('@huggingface/transformers'), onnxruntime: versionOf('onnxruntime-node') };
}

function versionOf(name: string): string {
  const file = path.join(peersDirectory, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
}
