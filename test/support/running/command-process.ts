/** Runs the command line: as a process, as a person or a script would, or in this one. */
import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { Readable } from 'node:stream';
import { environmentOf, runAndReport } from '../../../src/cli/run.ts';
import { newDirectory } from '../machine/temporary-directory.ts';

const root = path.resolve(import.meta.dirname, '../../..');
/** No state of commands in the home of who runs the tests. */
const stateHome = await newDirectory();
const sourceEntry = path.join(root, 'src/cli/main.ts');

export interface Finished {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly entry?: string;
  readonly cwd?: string;
  /** What standard input holds; absent: nothing is there to be read. */
  readonly input?: string | Buffer;
  /** It does not end there. */
  readonly inputStaysOpen?: boolean;
}

export interface Running {
  readonly process: ChildProcess;
  readonly finished: Promise<Finished>;
}

/** Only what is given here reaches the process: no MAXSIMD_* of the machine that runs the tests. */
export function start(args: readonly string[], options: RunOptions = {}): Running {
  const child = spawn(process.execPath, [options.entry ?? sourceEntry, ...args], {
    cwd: options.cwd ?? root,
    env: {
      PATH: process.env['PATH'] ?? '',
      XDG_STATE_HOME: stateHome,
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      ...options.environment,
    },
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  if (options.inputStaysOpen === true) child.stdin?.write(options.input ?? '');
  else child.stdin?.end(options.input);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout!.on('data', (part: Buffer) => stdout.push(part));
  child.stderr!.on('data', (part: Buffer) => stderr.push(part));
  const finished = new Promise<Finished>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode, signal) => {
      resolve({
        exitCode,
        signal,
        stdout: Buffer.concat(stdout).toString('utf8'),
        stderr: Buffer.concat(stderr).toString('utf8'),
      });
    });
  });
  return { process: child, finished };
}

export function run(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return start(args, options).finished;
}

/**
 * Runs in this process, which costs a tenth of one of its own: for what a command does, and not how a process ends, what
 * the environment of its own holds, or what it keeps running.
 */
export async function runHere(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const texts = { stdout: '', stderr: '' };
  const streams = {
    stdout: { write: (text: string) => void (texts.stdout += text) },
    stderr: { write: (text: string) => void (texts.stderr += text) },
  };
  const exitCode = await runAndReport(
    args,
    {
      ...environmentOf({ XDG_STATE_HOME: stateHome, ...options.environment }),
      stdin: Readable.from(
        options.input === undefined ? [] : [Buffer.from(options.input)],
      ) as NodeJS.ReadStream,
      stderr: streams.stderr as unknown as NodeJS.WriteStream,
      interruption: () => new AbortController().signal,
      serve: () => Promise.reject(new Error('a service has a process of its own')),
    },
    streams,
  );
  return { exitCode: exitCode ?? 0, signal: null, ...texts };
}

/** Runs with `--json` and parses the one document. */
export async function runJson(
  args: readonly string[],
  options: RunOptions = {},
  runs = run,
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of many shapes
): Promise<Finished & { readonly document: any }> {
  const finished = await runs([...args, '--json'], options);
  return { ...finished, document: JSON.parse(finished.stdout) };
}

/** The same in this process. */
export function runJsonHere(args: readonly string[], options?: RunOptions): ReturnType<typeof runJson> {
  return runJson(args, options, runHere);
}
