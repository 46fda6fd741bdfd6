/** Runs the command line as a process, as a person or a script would. */
import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { runHere, stateHome, type Finished, type RunOptions } from './command-here.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const sourceEntry = path.join(root, 'src/cli/main.ts');

export interface Running {
  readonly process: ChildProcess;
  readonly finished: Promise<Finished>;
}

/** The environment of the process. It has no MAXSIMD_* variables of the machine that runs the tests. */
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

/** Runs a command with `--json` and parses the document that it prints. */
export async function runJson(
  args: readonly string[],
  options: RunOptions = {},
  runs = run,
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of many shapes
): Promise<Finished & { readonly document: any }> {
  const finished = await runs([...args, '--json'], options);
  return { ...finished, document: JSON.parse(finished.stdout) };
}

/** Runs a command with `--json` in this process and parses the document that it prints. */
export function runJsonHere(args: readonly string[], options?: RunOptions): ReturnType<typeof runJson> {
  return runJson(args, options, runHere);
}
