/**
 * NVIDIA's Multi-Process Service: processes that share a GPU run on it at the same time, where they else take turns. A process that
 * does not reach it runs without it and says nothing, so the control program is asked who its clients are.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, openSync, closeSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { endWithThisProcess, scratchFolder } from '../lib/endings.ts';

const control = 'nvidia-cuda-mps-control';
const commandMs = 20_000;
const folders = ['CUDA_MPS_PIPE_DIRECTORY', 'CUDA_MPS_LOG_DIRECTORY'] as const;

export interface MpsUse {
  /** Ids of the processes that use it. */
  readonly clients: readonly number[];
  /** The control program's own words. */
  readonly said: string;
}

export interface Mps extends Disposable {
  readonly use: () => MpsUse;
  /** The end of what it and its server logged. */
  readonly log: () => string;
}

/** Starts it for the processes that this one starts from now on, until it is disposed of; throws why that failed. */
export function startMps(): Mps {
  const folder = scratchFolder('mps');
  const logFile = path.join(folder.path, 'start.log');
  const before = folders.map((name) => process.env[name]);
  for (const name of folders) process.env[name] = folder.path;
  const restore = (): void => {
    for (const [at, name] of folders.entries()) {
      if (before[at] === undefined) delete process.env[name];
      else process.env[name] = before[at];
    }
    folder[Symbol.dispose]();
  };
  const log = (): string =>
    [logFile, ...['control.log', 'server.log'].map((name) => path.join(folder.path, name))]
      .filter((file) => existsSync(file))
      .flatMap((file) => readFileSync(file, 'utf8').trim().split('\n').slice(-10))
      .join('\n');
  // The daemon keeps what it is given as its output: a pipe would not end.
  const output = openSync(logFile, 'w');
  const started = spawnSync(control, ['-d'], { stdio: ['ignore', output, output], timeout: commandMs });
  closeSync(output);
  const problem =
    started.error?.message ?? (started.status === 0 ? undefined : `exit code ${started.status}`);
  if (problem !== undefined) {
    const said = log();
    restore();
    throw new Error(`MPS: ${control} did not start: ${[problem, said].join('\n').trim()}`);
  }
  const quit = (): void => {
    spawnSync(control, { input: 'quit\n', stdio: ['pipe', 'ignore', 'ignore'], timeout: commandMs });
  };
  const forget = endWithThisProcess(quit);
  return {
    use: () => {
      const servers = ask('get_server_list');
      const clients = numbersOf(servers).map((server) => ask(`get_client_list ${server}`));
      return { clients: clients.flatMap(numbersOf), said: [servers, ...clients].join('\n') };
    },
    log,
    [Symbol.dispose]: () => {
      forget();
      quit();
      restore();
    },
  };
}

/** What it answers, or why it does not: a report is worth more than an error at its end. */
function ask(command: string): string {
  const { stdout, stderr, error } = spawnSync(control, {
    input: `${command}\n`,
    encoding: 'utf8',
    timeout: commandMs,
  });
  return error === undefined ? `${stdout}${stderr}`.trim() : error.message;
}

/** Numbers that lines begin with. */
function numbersOf(text: string): readonly number[] {
  return [...text.matchAll(/^\s*(\d+)\b/gm)].map(([, number]) => Number(number));
}
