/**
 * Where an import stands, so that one that was killed goes on where it was. A small JSON file in the user's state
 * directory: all rows up to `rows` are settled, with the counts they gave. Its name says which input it is of, read in
 * which way, into which index of which service, so no import meets the state of another. A state of other files (sizes and
 * modification times) means starting over, which is safe because an upsert replaces by `doc_id`. Removed when the import
 * reaches the end.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { CommandFailure, messageOf } from '../failure.ts';
import type { DocumentProblem } from './document.ts';
import { noTokens, type TokenTally } from './token-tally.ts';

export interface ImportPosition {
  /** Number of the last row up to which everything is settled; 0 = nothing is. */
  readonly rows: number;
  readonly done: number;
  readonly failed: number;
  /** Those of the documents done. */
  readonly tokens: TokenTally;
}

/** A position and what is reported about the way there. */
export interface ImportState {
  readonly position: ImportPosition;
  /** The first documents that failed, up to `problemsKeptMax`. */
  readonly problems: readonly DocumentProblem[];
}

export const problemsKeptMax = 100;
export const startState: ImportState = {
  position: { rows: 0, done: 0, failed: 0, tokens: noTokens },
  problems: [],
};

const stateSchema = z.object({
  format: z.literal('maxsimd-import-3'),
  owner: z.string(),
  rows: z.number().int().min(0),
  done: z.number().int().min(0),
  failed: z.number().int().min(0),
  tokens: z.object({
    inputTokens: z.number(),
    unknownTokens: z.number(),
    documents: z.number(),
    worst: z.array(z.object({ docId: z.string(), share: z.number() })),
  }),
  problems: z.array(
    z.object({ file: z.string(), line: z.number(), docId: z.string().optional(), error: z.string() }),
  ),
});

export interface CheckpointOptions {
  /** What was given: a file or a directory. */
  readonly source: string;
  readonly files: readonly string[];
  /** How its documents are read. */
  readonly reading: object;
  readonly url: string;
  readonly indexId: string;
  /** The user's (XDG_STATE_HOME), as the environment has it. */
  readonly stateHome: string | undefined;
  /** The very file, in place of one there. */
  readonly stateFile?: string | undefined;
}

export class Checkpoint {
  readonly file: string;
  readonly #owner: string;
  /** Nobody else keeps files in that directory. */
  readonly #isOurs: boolean;

  constructor({ url, indexId, reading, ...options }: CheckpointOptions) {
    const source = path.resolve(options.source);
    const paths = options.files.map((file) => path.relative(source, path.resolve(file)));
    const states = options.files.map((file) => {
      const { size, mtimeMs } = statSync(file);
      return [size, mtimeMs];
    });
    const name = digest(JSON.stringify([url, indexId, source, paths, reading]));
    this.#owner = `${name} ${digest(JSON.stringify(states))}`;
    this.#isOurs = options.stateFile === undefined;
    this.file = options.stateFile ?? path.join(stateDirectory(options.stateHome), `import-${name}.json`);
  }

  load(): ImportState {
    let state: unknown;
    try {
      state = JSON.parse(readFileSync(this.file, 'utf8'));
    } catch {
      return startState;
    }
    const result = stateSchema.safeParse(state);
    if (!result.success || result.data.owner !== this.#owner) return startState;
    const { rows, done, failed, tokens, problems } = result.data;
    return {
      position: { rows, done, failed, tokens },
      problems: problems.map(({ file, line, docId, error }) => ({ file, line, docId, error })),
    };
  }

  /** Replaces the file in one step: whenever we are killed, the old or the new one is there, whole. */
  save({ position, problems }: ImportState): void {
    const temporary = `${this.file}.${process.pid}`;
    try {
      if (this.#isOurs) mkdirSync(path.dirname(this.file), { recursive: true, mode: 0o700 });
      writeFileSync(
        temporary,
        JSON.stringify({ format: 'maxsimd-import-3', owner: this.#owner, ...position, problems }),
      );
      renameSync(temporary, this.file);
    } catch (error) {
      throw new CommandFailure(
        'input_error',
        `cannot keep the state of the import: ${messageOf(error)} (--state FILE chooses another place)`,
        { cause: error },
      );
    }
  }

  remove(): void {
    rmSync(this.file, { force: true });
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** As the XDG Base Directory Specification says; a relative path there is ignored. */
function stateDirectory(stateHome: string | undefined): string {
  const isUsable = stateHome !== undefined && path.isAbsolute(stateHome);
  return path.join(isUsable ? stateHome : path.join(homeDirectory(), '.local/state'), 'maxsimd');
}

/** A user that the machine does not know has none: saving will say so. */
function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}
