/** Runs the command line in this process. */
import { Readable } from 'node:stream';
import { environmentOf, runAndReport } from '../../../src/cli/run.ts';
import { newDirectory } from '../machine/temporary-directory.ts';

/** Commands keep their state here, and not in the home directory of the user who runs the tests. */
export const stateHome = await newDirectory();

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
  /** The content of standard input; absent = it is empty. */
  readonly input?: string | Buffer;
  /** Standard input stays open after `input`. */
  readonly inputStaysOpen?: boolean;
}

/**
 * Runs a command in this process, which takes a tenth of the time of a new process. It serves tests of what a command does. Tests
 * of exit codes, of the environment and of work that goes on need a real process.
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
