/** Starts Redis, in memory only, on a loopback port, with a password. */
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { startServer, type RunningServer } from './server-process.ts';

export interface RedisOptions {
  /** The program `redis-server`. */
  readonly program: string;
  readonly directory: string;
  readonly port: number;
  /** Default: a new one. */
  readonly password?: string;
  /** Settings that replace others of the same name. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface RunningRedis extends RunningServer {
  readonly url: string;
}

export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const { program, directory, port, password = randomBytes(12).toString('hex') } = options;
  await mkdir(directory, { recursive: true });
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir: directory,
    requirepass: password,
    save: '',
    ...options.settings,
  };
  const server = await startServer({
    name: 'Redis',
    command: program,
    args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    port,
    logFile: path.join(directory, 'redis.log'),
  });
  return { ...server, url: `redis://:${password}@127.0.0.1:${port}` };
}
