/** A question to the person at the terminal; where nobody sits there, the command line must say it. */
import { createInterface } from 'node:readline/promises';
import { CommandFailure } from '../failure.ts';

export async function askOnTerminal(
  question: string,
  stdin: NodeJS.ReadStream,
  stderr: NodeJS.WriteStream,
): Promise<boolean> {
  if (!stdin.isTTY) {
    throw new CommandFailure('usage_error', 'this erases data and nobody can be asked: add --yes');
  }
  const terminal = createInterface({ input: stdin, output: stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}
