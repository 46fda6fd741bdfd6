/**
 * The service under load: a server of its own on a fresh data directory (or one given by address), with a
 * tenant whose limits do not bind and an index of real text.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { root } from '../environment.ts';

export interface Target {
  readonly url: string;
  readonly apiKey: string;
  readonly indexId: string;
  readonly metricsUrl: string | undefined;
  readonly processId: number | undefined;
  readonly model: string;
  close(): Promise<void>;
}

export interface TargetOptions {
  /** Texts to store; queries and new documents are made of them too. */
  readonly texts: readonly string[];
  readonly remote:
    | { readonly url: string; readonly apiKey: string; readonly metricsUrl: string | undefined }
    | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Folder of the checkout whose server is started; this one if absent. */
  readonly checkout?: string;
  /** Each line of the server's log, which then tells of every request. */
  readonly onLogLine?: (line: string) => void;
  /** Ends the storing of texts. */
  readonly signal?: AbortSignal;
  readonly onStored?: (documents: number) => void;
}

const batchSize = 25;

export async function openTarget(options: TargetOptions): Promise<Target> {
  const server = options.remote === undefined ? await startServer(options) : undefined;
  const { url, apiKey, metricsUrl } = server ?? required(options.remote);
  try {
    const index = await post(url, apiKey, '/v1/indexes', { name: `capacity-${Date.now()}` });
    const indexId = String(index['id']);
    for (let from = 0; from < options.texts.length; from += batchSize) {
      const documents = options.texts
        .slice(from, from + batchSize)
        .map((text, i) => ({ doc_id: `document-${from + i}`, text }));
      options.signal?.throwIfAborted();
      await post(url, apiKey, `/v1/indexes/${indexId}/documents`, { documents });
      options.onStored?.(from + documents.length);
    }
    return {
      url,
      apiKey,
      indexId,
      metricsUrl,
      processId: server?.process.pid,
      model: `${String(index['model'])}/${String(index['model_version'])}`,
      close: async () => {
        await fetch(new URL(`/v1/indexes/${indexId}`, url), {
          method: 'DELETE',
          headers: { authorization: `Bearer ${apiKey}` },
        });
        await server?.close();
      },
    };
  } catch (error) {
    await server?.close();
    throw error;
  }
}

async function startServer({ environment, checkout = root, onLogLine }: TargetOptions) {
  const directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-capacity-'));
  const metricsPort = await freePort();
  const serverEnvironment = {
    ...environment,
    MAXSIMD_DATA_DIR: directory,
    MAXSIMD_HTTP_PORT: '0',
    MAXSIMD_METRICS_PORT: String(metricsPort),
    MAXSIMD_LOG_LEVEL: onLogLine === undefined ? 'error' : 'info',
  };
  const entry = path.join(checkout, 'src', 'cli', 'main.ts');
  const limits = [
    '--requests-per-minute',
    '100000000',
    '--max-concurrent-requests',
    '100000',
    '--input-tokens',
    '1000000000000',
  ];
  const tenant = JSON.parse(
    execFileSync(process.execPath, [entry, 'tenant', 'create', '--name', 'capacity', ...limits, '--json'], {
      env: serverEnvironment,
      encoding: 'utf8',
    }),
  ) as { readonly api_key: string };
  const server = spawn(process.execPath, [entry, 'serve'], {
    env: serverEnvironment,
    stdio: ['ignore', 'pipe', onLogLine === undefined ? 'inherit' : 'pipe'],
    // In a process group of its own: an interrupt at the terminal ends the benchmark, which then ends the server.
    detached: true,
  });
  const kill = (): void => void server.kill('SIGKILL');
  process.once('exit', kill);
  if (onLogLine !== undefined) createInterface({ input: server.stderr! }).on('line', onLogLine);
  const url = await readyUrl(server);
  const close = async (): Promise<void> => {
    const exited = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGTERM');
    await exited;
    process.off('exit', kill);
    rmSync(directory, { recursive: true, force: true });
  };
  return {
    url,
    apiKey: tenant.api_key,
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    process: server,
    close,
  };
}

/** Where a process serves, once it has said so in a line of JSON. */
export async function readyUrl(server: ChildProcess): Promise<string> {
  if (server.stdout === null) throw new Error('the server has no standard output');
  for await (const line of createInterface({ input: server.stdout })) {
    if (!line.startsWith('{')) continue;
    const event = JSON.parse(line) as { readonly event?: string; readonly url?: string };
    if (event.event === 'ready' && event.url !== undefined) return event.url;
  }
  throw new Error(`the server ended before it was ready (exit ${server.exitCode})`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function post(
  url: string,
  apiKey: string,
  route: string,
  body: unknown,
): Promise<Record<string, unknown>> {
  const response = await fetch(new URL(route, url), {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${route}: ${response.status} ${JSON.stringify(answer['error'])}`);
  return answer;
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('this is a bug: neither a server nor an address');
  return value;
}
