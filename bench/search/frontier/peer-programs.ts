/**
 * The programs of the peers: one in Rust, and one Python program with a module for each other engine. All Python packages are in
 * one environment; those of the engines have exact versions. Only what a run asks for is installed.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const peerNames = ['next-plaid', 'tachiom', 'lancedb', 'qdrant', 'colsearch'] as const;
export type PeerName = (typeof peerNames)[number];

type Progress = (line: string) => void;

/** The command that measures a peer, without its embeddings and settings. */
export interface PeerProgram {
  readonly command: readonly string[];
  /** Differs between versions of the engine, which do not read each other's indexes. */
  readonly versions: string;
}

const folder = path.join(import.meta.dirname, 'peers');

export function programOf(peer: PeerName, cache: string, onProgress: Progress): PeerProgram {
  if (peer === 'next-plaid')
    return {
      command: [buildNextPlaid(cache, onProgress)],
      versions: digestOf(path.join(folder, 'next-plaid', 'Cargo.lock')),
    };
  const python = pythonOf([peer], cache, onProgress);
  return {
    command: [python, path.join(folder, 'measure.py'), peer],
    versions: digestOf(requirementsOf(peer)),
  };
}

/** A command that finds the best chunks by rows of length 1. */
export function exactProgram(cache: string, onProgress: Progress): readonly string[] {
  return [pythonOf([], cache, onProgress), path.join(folder, 'exact.py')];
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

/** The interpreter of the environment, with the packages of these peers and of `exact.py`. */
function pythonOf(peers: readonly PeerName[], cache: string, onProgress: Progress): string {
  const environment = path.resolve(cache, 'python-peers');
  const python = path.join(environment, 'bin', 'python');
  if (!existsSync(python)) execFileSync('python3', ['-m', 'venv', environment]);
  const run = (...given: readonly string[]): string => execFileSync(python, given, { encoding: 'utf8' });
  for (const name of ['exact', ...peers] as const) {
    const requirements = requirementsOf(name);
    const wanted = readFileSync(requirements, 'utf8');
    const stamp = path.join(environment, `installed-${name}.txt`);
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) continue;
    onProgress(`installing the packages of ${name}${name === 'colsearch' ? ' (6 GB, PyTorch)' : ''}`);
    const options = ['--quiet', '--requirement', requirements];
    if (name === 'tachiom') {
      const packages = run('-c', 'import sysconfig; print(sysconfig.get_path("purelib"))').trim();
      options.push('--no-deps', '--only-binary', ':all:', '--platform', 'manylinux_2_39_x86_64');
      options.push('--upgrade', '--target', packages);
    }
    run('-m', 'pip', 'install', ...options);
    writeFileSync(stamp, wanted);
  }
  return python;
}

function requirementsOf(name: PeerName | 'exact'): string {
  return path.join(folder, 'requirements', `${name}.txt`);
}

function digestOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 8);
}
