/** Every report names the machine, the commit and the command that made it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import path from 'node:path';

export interface Environment {
  readonly cpu: string;
  readonly cores: number;
  readonly memory_bytes: number;
  readonly kernel: string;
  readonly threads: readonly number[];
  readonly commit: string;
  readonly command: string;
  readonly node: string;
  readonly date: string;
}

export const root = path.resolve(import.meta.dirname, '../..');

/** `kernel` is the MaxSim kernel in use; `threads` the thread counts measured. */
export function describeEnvironment(
  command: string,
  kernel: string,
  threads: readonly number[],
): Environment {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memory_bytes: totalmem(),
    kernel,
    threads,
    commit: commitOf(root),
    command,
    node: process.version,
    date: new Date().toISOString(),
  };
}

function commitOf(directory: string): string {
  try {
    const options = { cwd: directory, encoding: 'utf8' } as const;
    const commit = execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], options).trim();
    const dirty =
      execFileSync('git', ['status', '--porcelain', '--untracked-files=no'], options).trim() !== '';
    return dirty ? `${commit}-dirty` : commit;
  } catch {
    return packedCommitOf(directory);
  }
}

/** A checkout that bench/gpu/pack.sh packed has its commit in a file. */
function packedCommitOf(directory: string): string {
  try {
    return readFileSync(path.join(directory, 'build/commit'), 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
