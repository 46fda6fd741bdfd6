/** A server on a fresh data directory. It ends with the benchmark, and its files are removed, however the benchmark ends. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../../../deploy/local/free-port.ts';
import { endWithThisProcess, scratchFolder } from '../endings.ts';
import { root } from '../environment.ts';

export interface ServerOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Folder of the checkout whose server is started; this one if absent. */
  readonly checkout?: string;
  /** Gets each line of the server's log, which then has every request. */
  readonly onLogLine?: (line: string) => void;
}

export interface NewTenant {
  readonly tenantId: string;
  readonly apiKey: string;
}

export interface ServerProcess extends NewTenant {
  readonly url: string;
  /** Makes a further tenant whose limits do not bind, as the first one's do not. */
  readonly newTenant: (name: string) => NewTenant;
  readonly metricsUrl: string;
  readonly processId: number | undefined;
  /** Aborts with the reason when the server ends before `close`. */
  readonly ended: AbortSignal;
  close(): Promise<void>;
}

const limits = [
  '--requests-per-minute',
  '100000000',
  '--max-concurrent-requests',
  '100000',
  '--input-tokens',
  '1000000000000',
];

export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  const { environment, checkout = root, onLogLine } = options;
  const folder = scratchFolder('capacity');
  const directory = folder.path;
  const dataDirectory = path.join(directory, 'data');
  mkdirSync(dataDirectory);
  let server: ChildProcess | undefined;
  const kill = (): void => void server?.kill('SIGKILL');
  const forget = endWithThisProcess(kill);
  try {
    const metricsPort = await freePort();
    const serverEnvironment = {
      ...environment,
      // The sockets of its encoders lie there too.
      TMPDIR: directory,
      MAXSIMD_DATA_DIR: dataDirectory,
      MAXSIMD_HTTP_PORT: '0',
      MAXSIMD_METRICS_PORT: String(metricsPort),
      MAXSIMD_LOG_LEVEL: onLogLine === undefined ? (environment['MAXSIMD_LOG_LEVEL'] ?? 'error') : 'info',
    };
    const entry = path.join(checkout, 'src', 'cli', 'main.ts');
    const newTenant = (name: string): NewTenant => {
      const args = [entry, 'tenant', 'create', '--name', name, ...limits, '--json'];
      const created = execFileSync(process.execPath, args, { env: serverEnvironment, encoding: 'utf8' });
      const made = JSON.parse(created) as { readonly tenant_id: string; readonly api_key: string };
      return { tenantId: made.tenant_id, apiKey: made.api_key };
    };
    const first = newTenant('benchmark');
    server = spawn(process.execPath, [entry, 'serve'], {
      env: serverEnvironment,
      stdio: ['ignore', 'pipe', onLogLine === undefined ? 'inherit' : 'pipe'],
      // In a process group of its own: an interrupt at the terminal ends the benchmark, which then ends the server.
      detached: true,
    });
    const { ended, close } = watched(server);
    if (onLogLine !== undefined) createInterface({ input: server.stderr! }).on('line', onLogLine);
    return {
      ...first,
      newTenant,
      url: await readyUrl(server),
      metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
      processId: server.pid,
      ended,
      close: async () => {
        await close();
        forget();
        folder[Symbol.dispose]();
      },
    };
  } catch (error) {
    kill();
    forget();
    folder[Symbol.dispose]();
    throw error;
  }
}

/** The URL of a server, from its first line of JSON. */
async function readyUrl(server: ChildProcess): Promise<string> {
  if (server.stdout === null) throw new Error('the server has no standard output');
  for await (const line of createInterface({ input: server.stdout })) {
    if (!line.startsWith('{')) continue;
    const event = JSON.parse(line) as { readonly event?: string; readonly url?: string };
    if (event.event === 'ready' && event.url !== undefined) return event.url;
  }
  throw new Error(`the server ended before it was ready (exit ${server.exitCode})`);
}

function watched(server: ChildProcess): Pick<ServerProcess, 'ended' | 'close'> {
  const ended = new AbortController();
  const exited = Promise.withResolvers<void>();
  let isClosing = false;
  server.once('exit', (code, signal) => {
    if (!isClosing || code !== 0) {
      ended.abort(new Error(`the server ended by itself (${signal ?? `exit ${code}`})`));
    }
    exited.resolve();
  });
  return {
    ended: ended.signal,
    close: async () => {
      isClosing = true;
      server.kill('SIGTERM');
      await exited.promise;
    },
  };
}
