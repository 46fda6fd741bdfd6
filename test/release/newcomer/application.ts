/** The newcomer's application. It searches the whole time (`search.mts`). */
import { spawn } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';

export interface Searched {
  readonly answered: number;
  readonly failures: readonly string[];
}

export interface Application {
  /** Resolves when answers come from the index. */
  switchTo(index: string): Promise<void>;
  /** Ends it, and says what it saw. */
  end(): Promise<Searched>;
}

type Line = Partial<Searched> & { readonly answering?: string };

/** It begins with this index. */
export function startApplication(
  folder: string,
  environment: Readonly<Record<string, string>>,
  index: string,
): Application {
  const configuration = path.join(folder, 'current-index');
  writeFileSync(configuration, index);
  const child = spawn(process.execPath, ['search.mts'], {
    cwd: folder,
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Line> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error('the application ended by itself');
    return JSON.parse(value) as Line;
  };
  return {
    switchTo: async (wanted) => {
      // In one step: the application reads it again and again.
      writeFileSync(`${configuration}.new`, wanted);
      renameSync(`${configuration}.new`, configuration);
      const { answering } = await next();
      if (answering !== wanted) throw new Error(`answers come from ${answering}, not from ${wanted}`);
    },
    end: async () => {
      child.stdin.end();
      const { answered = 0, failures = [] } = await next();
      return { answered, failures };
    },
  };
}
