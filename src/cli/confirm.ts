/** Consent of the person at the terminal to what cannot be undone. */
import { CommandFailure } from './failure.ts';

/** Resolves once the person agrees, and rejects otherwise. */
export type Confirm = (question: string) => Promise<void>;

/** `--yes` stands for an answer. It is needed where nobody sits at a terminal. */
export function confirmation(
  { yes }: { readonly yes?: true },
  { stdin, stderr }: { readonly stdin: NodeJS.ReadStream; readonly stderr: NodeJS.WriteStream },
): Confirm {
  return async (question) => {
    if (yes === true) return;
    if (!stdin.isTTY)
      throw new CommandFailure('usage_error', 'this erases data and nobody can be asked: add --yes');
    const { createInterface } = await import('node:readline/promises');
    const terminal = createInterface({ input: stdin, output: stderr });
    try {
      if (/^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())) return;
    } finally {
      terminal.close();
    }
    throw new CommandFailure('not_confirmed', 'nothing was changed');
  };
}
