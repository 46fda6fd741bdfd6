/**
 * Where an import stands, so that one that was killed goes on where it was. A small JSON file: all lines
 * up to `lines` are settled, with the counts they gave. It belongs to one input file in one state (size and
 * modification time) and one index; anything else about it that does not fit means starting over, which is
 * safe because an upsert replaces by `doc_id`. Removed when the import reaches the end.
 */
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { CommandFailure, messageOf } from '../failure.ts';
import type { DocumentProblem } from './document.ts';

export interface ImportPosition {
  /** Last line up to which everything is settled; 0 = nothing is. */
  readonly lines: number;
  readonly done: number;
  readonly failed: number;
}

/** A position and what is reported about the way there. */
export interface ImportState {
  readonly position: ImportPosition;
  /** The first documents that failed, up to `problemsKeptMax`. */
  readonly problems: readonly DocumentProblem[];
}

export const problemsKeptMax = 100;
const startState: ImportState = { position: { lines: 0, done: 0, failed: 0 }, problems: [] };

const stateSchema = z.object({
  format: z.literal('maxsimd-import-1'),
  owner: z.string(),
  lines: z.number().int().min(0),
  done: z.number().int().min(0),
  failed: z.number().int().min(0),
  problems: z.array(z.object({ line: z.number(), docId: z.string().optional(), error: z.string() })),
});

export interface CheckpointOptions {
  readonly inputFile: string;
  readonly url: string;
  readonly indexId: string;
  /** Defaults to a hidden file beside the input, one for each index. */
  readonly stateFile?: string | undefined;
}

export class Checkpoint {
  readonly file: string;
  readonly #owner: string;

  constructor(options: CheckpointOptions) {
    const { size, mtimeMs } = statSync(options.inputFile);
    const inputFile = path.resolve(options.inputFile);
    const target = createHash('sha256')
      .update(`${options.url} ${options.indexId}`)
      .digest('hex')
      .slice(0, 16);
    this.#owner = `${target} ${size} ${mtimeMs} ${path.basename(inputFile)}`;
    this.file =
      options.stateFile ??
      path.join(path.dirname(inputFile), `.${path.basename(inputFile)}.${target}.maxsimd-import`);
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
    const { lines, done, failed, problems } = result.data;
    return {
      position: { lines, done, failed },
      problems: problems.map(({ line, docId, error }) => ({ line, docId, error })),
    };
  }

  /** Replaces the file in one step: whenever we are killed, the old or the new one is there, whole. */
  save({ position, problems }: ImportState): void {
    const temporary = `${this.file}.${process.pid}`;
    try {
      writeFileSync(
        temporary,
        JSON.stringify({ format: 'maxsimd-import-1', owner: this.#owner, ...position, problems }),
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
