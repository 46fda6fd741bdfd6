/** An encoder process of the tiny model that listens on TCP, as encoders on other hosts do. It ends with the test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { tinyModel } from './models.ts';

const entry = path.resolve(import.meta.dirname, '../../../src/encoder/server/main.ts');

export interface TcpEncoder {
  readonly address: string;
  readonly port: number;
  /** Resolves when the process has ended. */
  end(): Promise<void>;
}

/** `port`: 0 = any free one. */
export async function startTcpEncoder(
  host: string,
  port = 0,
  extraArguments: readonly string[] = [],
): Promise<TcpEncoder> {
  const options = [
    '--listen',
    `${host}:${port}`,
    '--model-dir',
    tinyModel,
    '--provider',
    'cpu',
    '--threads',
    '1',
  ];
  const child = spawn(process.execPath, [entry, ...options, '--log-level', 'error', ...extraArguments], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  onTestFinished(end);
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { address } = JSON.parse(line) as { readonly address: string };
  return { address, port: Number(address.split(':').at(-1)), end };
}
