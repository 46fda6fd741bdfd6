/**
 * The programs of the peers: one in Rust, and one Python program with a module for each other engine. All Python packages are in
 * one environment; those of the engines have exact versions.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const peerNames = ['next-plaid', 'tachiom', 'lancedb', 'qdrant', 'colsearch'] as const;
export type PeerName = (typeof peerNames)[number];

type Progress = (line: string) => void;

const folder = path.join(import.meta.dirname, 'peers');

/** A command that measures a peer, without its embeddings and settings. */
export function programOf(peer: PeerName, cache: string, onProgress: Progress): readonly string[] {
  return peer === 'next-plaid'
    ? [buildNextPlaid(cache, onProgress)]
    : [pythonOf(cache, onProgress), path.join(folder, 'measure.py'), peer];
}

/** A command that finds the best chunks by rows of length 1. */
export function exactProgram(cache: string, onProgress: Progress): readonly string[] {
  return [pythonOf(cache, onProgress), path.join(folder, 'exact.py')];
}

/** Compiled for this processor. */
function buildNextPlaid(cache: string, onProgress: Progress): string {
  const target = path.resolve(cache, 'next-plaid');
  onProgress('compiling next-plaid');
  execFileSync('cargo', ['build', '--release', '--locked', '--quiet'], {
    cwd: path.join(folder, 'next-plaid'),
    env: { ...process.env, CARGO_TARGET_DIR: target, RUSTFLAGS: '-C target-cpu=native' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return path.join(target, 'release', 'maxsimd-bench-next-plaid');
}

/** The interpreter of the environment, which is made anew when a version has changed. */
function pythonOf(cache: string, onProgress: Progress): string {
  const environment = path.resolve(cache, 'python-peers');
  const python = path.join(environment, 'bin', 'python');
  const stamp = path.join(environment, 'installed.txt');
  const requirements = path.join(folder, 'requirements.txt');
  const newerGlibc = path.join(folder, 'requirements-glibc-2.39.txt');
  const wanted = [requirements, newerGlibc].map((file) => readFileSync(file, 'utf8')).join('');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return python;
  onProgress('installing the Python peers (about 7 GB, most of it PyTorch)');
  rmSync(environment, { recursive: true, force: true });
  execFileSync('python3', ['-m', 'venv', environment]);
  const pip = (...given: readonly string[]): string =>
    execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...given], { encoding: 'utf8' });
  pip('-r', requirements);
  // The wheel of TACHIOM asks for glibc 2.39, and also runs with an older one.
  const target = ['-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'];
  const packages = execFileSync(python, target, { encoding: 'utf8' }).trim();
  const platform = ['--no-deps', '--only-binary', ':all:', '--platform', 'manylinux_2_39_x86_64'];
  pip(...platform, '--target', packages, '-r', newerGlibc);
  writeFileSync(stamp, wanted);
  return python;
}
