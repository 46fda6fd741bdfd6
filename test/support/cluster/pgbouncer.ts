/** Starts PgBouncer before a PostgreSQL, on a loopback port, with its defaults but for `settings`. */
import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { freePort } from '../../../deploy/local/free-port.ts';
import { startServer, type RunningServer } from '../../../deploy/local/server-process.ts';
import { newDirectory } from '../machine/temporary-directory.ts';

export interface RunningPgbouncer extends RunningServer {
  readonly url: string;
}

/** `url`: a database of the server. The user of that URL may connect. */
export async function startPgbouncer(
  url: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<RunningPgbouncer> {
  const { hostname, port: serverPort, username, password } = new URL(url);
  // It refuses to run as root, and reads its files as the other user.
  const directory = await newDirectory();
  await chmod(directory, 0o755);
  const [file, users] = [path.join(directory, 'pgbouncer.ini'), path.join(directory, 'users')];
  await writeFile(users, `"${username}" "${password}"\n`);
  const port = await freePort();
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const databases = ['[databases]', `* = host=${hostname} port=${serverPort}`];
  await writeFile(file, [...databases, '[pgbouncer]', ...lines, ''].join('\n'));
  const server = await startServer({
    name: 'PgBouncer',
    command: 'pgbouncer',
    args: [file],
    port,
    logFile: path.join(directory, 'pgbouncer.log'),
    ...(process.getuid?.() === 0 ? { user: 'nobody' } : {}),
  });
  return { ...server, url: Object.assign(new URL(url), { port: String(port) }).href };
}
