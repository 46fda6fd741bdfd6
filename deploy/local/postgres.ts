/** Starts PostgreSQL with its data in a directory, on a loopback port, with a password. Everything is synced. */
import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { startServer, type RunningServer } from './server-process.ts';

export interface PostgresOptions {
  /** Folder of `initdb` and `postgres`. */
  readonly programs: string;
  /** Created if it is missing. Data in it are used again. All users must be able to read its parents. */
  readonly directory: string;
  readonly port: number;
  readonly settings?: Readonly<Record<string, string>>;
}

export interface RunningPostgres extends RunningServer {
  readonly url: string;
  /** The folder of its data. */
  readonly data: string;
  /** The URL of another database of the server. */
  urlOf(database: string): string;
}

const user = 'maxsimd';
const connectionsMax = 200;

export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const { programs, directory, port, settings = {} } = options;
  const data = path.join(directory, 'data');
  const passwordFile = path.join(directory, 'password');
  // PostgreSQL refuses to run as root.
  const owner = process.getuid?.() === 0 ? 'nobody' : undefined;
  await mkdir(directory, { recursive: true });
  if (!existsSync(data)) await initialise({ programs, directory, data, owner, passwordFile });
  const password = await readFile(passwordFile, 'utf8');
  const all = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: String(connectionsMax),
    ...settings,
  };
  const server = await startServer({
    name: 'PostgreSQL',
    command: path.join(programs, 'postgres'),
    args: [
      '-D',
      data,
      '-p',
      String(port),
      ...Object.entries(all).map(([name, value]) => `-c${name}=${value}`),
    ],
    port,
    logFile: path.join(directory, 'postgres.log'),
    stopSignal: 'SIGINT',
    probe: async () => {
      const args = ['-q', '-h', '127.0.0.1', '-p', String(port)];
      await promisify(execFile)(path.join(programs, 'pg_isready'), args);
    },
    ...(owner === undefined ? {} : { user: owner }),
  });
  const urlOf = (database: string): string => `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
  return { ...server, url: urlOf('postgres'), data, urlOf };
}

async function initialise(options: {
  readonly programs: string;
  readonly directory: string;
  readonly data: string;
  readonly owner: string | undefined;
  readonly passwordFile: string;
}): Promise<void> {
  const { programs, directory, data, owner, passwordFile } = options;
  // An interrupted initialisation is begun again.
  const unfinished = `${data}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await writeFile(passwordFile, randomBytes(12).toString('hex'));
  if (owner !== undefined) {
    const [uid = 0, gid = 0] = ['-u', '-g'].map((flag) =>
      Number(spawnSync('id', [flag, owner], { encoding: 'utf8' }).stdout),
    );
    await chown(directory, uid, gid);
    await chown(passwordFile, uid, gid);
  }
  await chmod(passwordFile, 0o600);
  const initdb = [path.join(programs, 'initdb'), '-D', unfinished, '-U', user, '-E', 'UTF8', '--locale=C'];
  const command = [...initdb, '--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--no-instructions'];
  const asOwner =
    owner === undefined ? [] : ['setpriv', `--reuid=${owner}`, '--regid=nogroup', '--clear-groups'];
  const [program = '', ...args] = [...asOwner, ...command];
  await promisify(execFile)(program, args, { cwd: '/' });
  await rename(unfinished, data);
}
