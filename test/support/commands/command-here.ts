/** Runs the command line in this process. */
import { Readable } from 'node:stream';
import { environmentOf, runAndReport } from '../../../src/cli/run.ts';
import { newDirectory } from '../machine/temporary-directory.ts';

/** No state of commands in the home of who runs the tests. */
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
  /** It does not end there. */
  readonly inputStaysOpen?: boolean;
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
