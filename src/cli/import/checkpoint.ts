/**
 * Keeps the state of an import, so that one that was killed goes on where it was. It is a small JSON file in the user's
 * state directory. It says up to which row everything is settled, and the counts so far. The name of the file is a digest
 * of the input, the way of reading, the index and the service, so no import meets the state of another. If the input files
 * have other sizes, modification times or entity tags, or if the file does not fit its checksum, the import starts over. This
 * is safe, because an upsert replaces by `doc_id`. A wrong number of rows would leave out documents without a word. The file is
 * removed when the import reaches the end.
 */
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { makeDirectories } from '../../process/make-directories.ts';
import { checkedJson, readCheckedJson } from '../../index/storage/checked-json.ts';
import { hasCode } from '../../system-errors.ts';
import { inputError, messageOf } from '../failure.ts';
import type { DocumentProblem } from './document.ts';
import { isS3 } from './sources/input-file.ts';
import type { RowFile } from './sources/row-file.ts';
import { noTokens, type TokenTally } from './token-tally.ts';

export interface ImportPosition {
  /** All rows up to this number are settled. */
  readonly rows: number;
  /** Documents among them. */
  readonly documents: number;
  readonly done: number;
  readonly failed: number;
  /** Tokens of the documents done. */
  readonly tokens: TokenTally;
}

/** A position, and the failures before it. */
export interface ImportState {
  readonly position: ImportPosition;
  /** The first documents that failed, up to `problemsKeptMax`. */
  readonly problems: readonly DocumentProblem[];
}

export const problemsKeptMax = 100;
export const startState: ImportState = {
  position: { rows: 0, documents: 0, done: 0, failed: 0, tokens: noTokens },
  problems: [],
};

const stateSchema = z.object({
  format: z.literal('maxsimd-import-5'),
  owner: z.string(),
  rows: z.number().int().min(0),
  documents: z.number().int().min(0),
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
  /** The file, directory or object of the command line. */
  readonly source: string;
  readonly files: readonly Pick<RowFile, 'name' | 'version'>[];
  /** Options that change how the documents are read. */
  readonly reading: object;
  readonly url: string;
  readonly indexId: string;
  /** The user's (XDG_STATE_HOME), as the environment has it. */
  readonly stateHome: string | undefined;
  /** A file that replaces the one there. */
  readonly stateFile?: string | undefined;
}

export class Checkpoint {
  readonly file: string;
  readonly #owner: string;
  /** The directory belongs to this program, so it may be created. */
  readonly #isOurs: boolean;

  constructor({ url, indexId, reading, ...options }: CheckpointOptions) {
    const source = isS3(options.source) ? options.source : path.resolve(options.source);
    const paths = options.files.map(({ name: file }) => path.relative(options.source, file));
    const versions = options.files.map(({ version }) => version);
    const name = digest(JSON.stringify([url, indexId, source, paths, reading]));
    this.#owner = `${name} ${digest(JSON.stringify(versions))}`;
    this.#isOurs = options.stateFile === undefined;
    this.file = options.stateFile ?? path.join(stateDirectory(options.stateHome), `import-${name}.json`);
  }

  /** The state to go on from. Calls `say` when an import starts over although there is a state. */
  load(say: (message: string) => void): ImportState {
    let state: z.output<typeof stateSchema>;
    try {
      state = stateSchema.parse(readCheckedJson(readFileSync(this.file, 'utf8')));
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENOTDIR'))
        say(
          `the state of an earlier run (${this.file}) is damaged, unreadable or of another release: this import starts over`,
        );
      return startState;
    }
    if (state.owner !== this.#owner) return startState;
    const { rows, documents, done, failed, tokens, problems } = state;
    return {
      position: { rows, documents, done, failed, tokens },
      problems: problems.map(({ file, line, docId, error }) => ({ file, line, docId, error })),
    };
  }

  /** Replaces the file in one step: after a kill, either the old or the new one is there, complete. */
  save({ position, problems }: ImportState): void {
    const temporary = `${this.file}.${process.pid}`;
    try {
      if (this.#isOurs) makeDirectories(path.dirname(this.file), 0o700);
      writeFileSync(
        temporary,
        checkedJson({ format: 'maxsimd-import-5', owner: this.#owner, ...position, problems }),
      );
      renameSync(temporary, this.file);
    } catch (error) {
      throw inputError(
        `cannot keep the state of the import: ${messageOf(error)} (--state FILE chooses another place)`,
        error,
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

/** The XDG Base Directory Specification says to ignore a relative path. */
function stateDirectory(stateHome: string | undefined): string {
  const isUsable = stateHome !== undefined && path.isAbsolute(stateHome);
  return path.join(isUsable ? stateHome : path.join(homeDirectory(), '.local/state'), 'maxsimd');
}

/** A user that the machine does not know has no home. Saving the state then fails with a message. */
function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}
