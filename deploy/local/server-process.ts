/** Runs a server as a child process. It is ready when it answers, and it ends with this process. */
import { spawn, type ChildProcess } from 'node:child_process';
import { openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export interface RunningServer {
  readonly port: number;
  /** Ends it and waits for its end. Idempotent. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Sends a signal without waiting. */
  kill(signal: NodeJS.Signals): void;
  /** Starts it again after its end, with the same port and data. */
  start(): Promise<void>;
}

export interface ServerCommand {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly port: number;
  readonly logFile: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** An unprivileged user of the system, for a server that refuses root. */
  readonly user?: string;
  /** The signal for an orderly end. Default SIGTERM. */
  readonly stopSignal?: NodeJS.Signals;
  /** Rejects until the server answers. Absent = the server must accept a connection. */
  readonly probe?: () => Promise<void>;
}

const readyMsMax = 120_000;
const stopMsMax = 10_000;
const pollMs = 25;

export async function startServer(server: ServerCommand): Promise<RunningServer> {
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const log = openSync(server.logFile, 'a');
    const [command, args] = withParent(server);
    child = spawn(command, args, {
      stdio: ['ignore', log, log],
      env: { ...process.env, ...server.environment },
      cwd: '/',
    });
    await ready(server, child);
  };
  const isRunning = (): boolean =>
    child !== undefined && child.exitCode === null && child.signalCode === null;
  await start();
  return {
    port: server.port,
    start,
    kill: (signal) => void child?.kill(signal),
    async stop(signal = server.stopSignal ?? 'SIGTERM') {
      if (!isRunning()) return;
      const ended = new Promise((resolve) => child?.once('exit', resolve));
      child?.kill(signal);
      const isLate = await Promise.race([ended.then(() => false), pause(stopMsMax, true, { ref: false })]);
      if (isLate) child?.kill('SIGKILL');
      await ended;
    },
  };
}

/** On Linux `setpriv`, which every Debian has, ends the server with its parent. */
function withParent({ command, args, user, stopSignal }: ServerCommand): [string, string[]] {
  if (process.platform !== 'linux') return [command, [...args]];
  const identity = user === undefined ? [] : [`--reuid=${user}`, '--regid=nogroup', '--clear-groups'];
  const death = `--pdeathsig=${(stopSignal ?? 'SIGTERM').slice('SIG'.length)}`;
  return ['setpriv', [...identity, death, command, ...args]];
}

async function ready(server: ServerCommand, child: ChildProcess): Promise<void> {
  const endsAt = performance.now() + readyMsMax;
  const probe = server.probe ?? (() => connects(server.port));
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      const hasEnded = child.exitCode !== null || child.signalCode !== null;
      if (!hasEnded && performance.now() < endsAt) {
        await pause(pollMs);
        continue;
      }
      child.kill('SIGKILL');
      const log = await readFile(server.logFile, 'utf8');
      throw new Error(`${server.name} did not start: ${log.trim().split('\n').slice(-5).join(' | ')}`, {
        cause: error,
      });
    }
  }
}

async function connects(port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = createConnection({ host: '127.0.0.1', port }, resolve);
  socket.once('error', reject);
  try {
    await promise;
  } finally {
    socket.destroy();
  }
}
