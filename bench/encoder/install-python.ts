/** Installs sentence-transformers into a virtual environment beside the benchmark, again only when its versions changed. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface PythonPeer {
  readonly interpreter: string;
  readonly script: string;
  /** Names and versions, for the report. */
  readonly versions: string;
}

/** `python` is a command; throws with pip's words when the packages cannot be installed. */
export function installPythonPeer(
  python: string,
  peersDirectory: string,
  onProgress: (line: string) => void,
): PythonPeer {
  const environment = path.join(peersDirectory, '.venv');
  const interpreter = path.join(environment, 'bin', 'python');
  const file = path.join(peersDirectory, 'requirements.txt');
  const wanted = readFileSync(file, 'utf8');
  const stamp = path.join(environment, '.installed-requirements.txt');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    onProgress('installing sentence-transformers (about 6 GB)');
    run(python, ['-m', 'venv', environment]);
    run(interpreter, ['-m', 'pip', 'install', '--quiet', '--no-cache-dir', '--requirement', file]);
    writeFileSync(stamp, wanted);
  }
  return {
    interpreter,
    script: path.join(peersDirectory, 'sentence_transformers_peer.py'),
    versions: wanted
      .split('\n')
      .filter((line) => /^(sentence-transformers|torch)==/.test(line))
      .join(', '),
  };
}

function run(command: string, args: readonly string[]): void {
  const { status, error, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (status !== 0) throw new Error(`${command}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`);
}
