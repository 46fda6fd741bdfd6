/** A real encoder as a process of its own, as it runs on another host. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { within } from './eventually.ts';
import { childEnvironment, repositoryRoot } from './launch.ts';

export interface EncoderProcess {
  /** `host:port` */
  readonly address: string;
  readonly pid: number;
  kill(): Promise<void>;
}

/** Starts an encoder with the models that are shipped. */
export async function startEncoderProcess(): Promise<EncoderProcess> {
  const child = spawn(
    process.execPath,
    [
      path.join(repositoryRoot, 'src/encoder/server/main.ts'),
      '--listen=127.0.0.1:0',
      '--provider=cpu',
      '--log-level=error',
      ...['bge-small-maxsim/2', 'bge-small-maxsim/1', 'minilm-l6-maxsim/1'].map(
        (name) => `--model-dir=${path.join(repositoryRoot, 'models', name)}`,
      ),
    ],
    { env: childEnvironment({}), stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const exited = once(child, 'exit');
  const [line] = (await within(
    'the start of the encoder',
    once(createInterface({ input: child.stdout }), 'line'),
  )) as [string];
  const { address } = JSON.parse(line) as { readonly address: string };
  return {
    address,
    pid: child.pid!,
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
