/** Starts HAProxy before nodes on this machine, on a loopback port. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startServer, type RunningServer } from './server-process.ts';

export interface HaproxyOptions {
  /** The program `haproxy`. */
  readonly program: string;
  readonly directory: string;
  readonly port: number;
  /** Ports of the nodes. */
  readonly nodes: readonly number[];
  /** `index`: all requests of an index go to one node. `turns`: each request goes to the next node. */
  readonly balance: 'index' | 'turns';
}

const sample = path.resolve(import.meta.dirname, '../haproxy/haproxy.cfg');

/** Runs the sample configuration `deploy/haproxy/haproxy.cfg` with these ports. */
export async function startHaproxy(options: HaproxyOptions): Promise<RunningServer> {
  const { program, directory, port, nodes, balance } = options;
  await mkdir(directory, { recursive: true });
  const servers = nodes.map((node, place) => `  server node-${place + 1} 127.0.0.1:${node}`);
  const lines = (await readFile(sample, 'utf8'))
    .split('\n')
    .filter((line) => !line.startsWith('  server '))
    .map((line) => (balance === 'turns' && line.startsWith('  balance') ? '  balance roundrobin' : line))
    .filter((line) => balance === 'index' || !line.startsWith('  hash-type'));
  const file = path.join(directory, 'haproxy.cfg');
  await writeFile(file, [...lines, ...servers, ''].join('\n'));
  return startServer({
    name: 'HAProxy',
    command: program,
    args: ['-f', file, '-db'],
    port,
    logFile: path.join(directory, 'haproxy.log'),
    environment: { BIND: `127.0.0.1:${port}` },
  });
}
