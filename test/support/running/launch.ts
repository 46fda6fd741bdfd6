/**
 * The real server as a child process: `src/cli/main.ts serve` on any free port over a fresh data
 * directory, with its own temporary directory, so that tests can look at everything it wrote.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Constants } from '../../../src/app/config.ts';

export const repositoryRoot = path.resolve(import.meta.dirname, '../../..');
const entryWithConstants = path.join(repositoryRoot, 'test/support/main-with-constants.ts');
export const entryPoint = path.join(repositoryRoot, 'src/cli/main.ts');

export interface LaunchOptions {
  /** A directory made by `makeScratch`; a fresh one by default. */
  readonly scratch?: Scratch;
  /** Variables of the server. They take precedence over those of the tests. */
  readonly env?: Readonly<Record<string, string>>;
  /** Values for constants of the server that no variable sets. */
  readonly constants?: Partial<Constants>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

export interface ReadyLine {
  readonly event: 'ready';
  readonly url: string;
  readonly model: string;
  readonly model_version: string;
}

/** A process that may become a server. Tests of start-up errors launch processes that do not. */
export interface Launch {
  readonly pid: number;
  readonly scratch: Scratch;
  /** Settles with the parsed line, or rejects with the output when the process ends without one. */
  readonly ready: Promise<ReadyLine>;
  readonly exited: Promise<Exit>;
  output(): Output;
  signal(name: NodeJS.Signals): void;
}

/** Where one server lives: `data` is its data directory, `temporary` its TMPDIR. */
export interface Scratch {
  readonly root: string;
  readonly data: string;
  readonly temporary: string;
  remove(): Promise<void>;
}

export async function makeScratch(): Promise<Scratch> {
  const root = await mkdtemp(path.join(tmpdir(), 'maxsimd-e2e-'));
  const temporary = path.join(root, 't');
  await mkdir(temporary);
  return {
    root,
    data: path.join(root, 'data'),
    temporary,
    remove: () => rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }),
  };
}

/**
 * The environment of a child process: that of this process without variables of the service and of its inference runtime, plus
 * `own`. `MAXSIMD_API_THREADS` stays, so that a run of tests with `MAXSIMD_API_THREADS=3` gives threads to every server.
 */
export function childEnvironment(own: Readonly<Record<string, string>>): Record<string, string> {
  const inherited = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^(MAXSIMD_(?!API_THREADS)|ORT_|VITEST)/.test(entry[0]),
  );
  return {
    ...Object.fromEntries(inherited),
    NODE_ENV: 'production',
    ...clusterEnvironment(),
    ...own,
  };
}

/** Variables by which every process of the tests takes part in a cluster (`end-to-end/cluster`); none without one. */
export function clusterEnvironment(): Readonly<Record<string, string>> {
  return JSON.parse(process.env['TEST_CLUSTER'] ?? '{}') as Record<string, string>;
}

export function isClustered(): boolean {
  return Object.keys(clusterEnvironment()).length > 0;
}

/** Starts the process and returns at once. */
export async function launchServer(options: LaunchOptions = {}): Promise<Launch> {
  const scratch = options.scratch ?? (await makeScratch());
  const entry =
    options.constants === undefined ? [entryPoint] : [entryWithConstants, JSON.stringify(options.constants)];
  const child = spawn(process.execPath, [...entry, 'serve'], {
    cwd: scratch.root,
    env: childEnvironment({
      TMPDIR: scratch.temporary,
      MAXSIMD_DATA_DIR: scratch.data,
      MAXSIMD_HTTP_PORT: '0',
      MAXSIMD_METRICS_PORT: '-1',
      // The bound is long, so that a busy machine fails no test.
      MAXSIMD_TIMEOUT_SEARCH_MS: '100000',
      ...options.env,
    }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return follow(child, scratch);
}

const living = new Set<ChildProcess>();

/** Kills the processes that a failed test left running. */
export function killLaunched(): void {
  for (const child of living) child.kill('SIGKILL');
}

function follow(child: ChildProcess, scratch: Scratch): Launch {
  const chunks: { stdout: string; stderr: string } = { stdout: '', stderr: '' };
  const ready = Promise.withResolvers<ReadyLine>();
  const exited = Promise.withResolvers<Exit>();
  living.add(child);
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    chunks.stdout += text;
    const line = findReadyLine(chunks.stdout);
    if (line !== undefined) ready.resolve(line);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    chunks.stderr += text;
  });
  child.once('error', (error) => {
    ready.reject(error);
    exited.reject(error);
  });
  child.once('close', (code, signal) => {
    living.delete(child);
    ready.reject(
      new Error(`the server ended (${code ?? signal}) before it was ready\n${chunks.stdout}${chunks.stderr}`),
    );
    exited.resolve({ code, signal });
  });
  // A test need not wait for these. If one rejects then, that must not end the process of the tests.
  ready.promise.catch(() => undefined);
  exited.promise.catch(() => undefined);
  if (child.pid === undefined) throw new Error('the server could not be spawned');
  return {
    pid: child.pid,
    scratch,
    ready: ready.promise,
    exited: exited.promise,
    output: () => ({ ...chunks }),
    signal: (name) => void child.kill(name),
  };
}

function findReadyLine(stdout: string): ReadyLine | undefined {
  const line = stdout
    .split('\n')
    .find((candidate) => candidate.startsWith('{"event":"ready"') && candidate.endsWith('}'));
  return line === undefined ? undefined : (JSON.parse(line) as ReadyLine);
}
