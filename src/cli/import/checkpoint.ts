/**
 * Where an import stands, so that one that was killed goes on where it was. A small JSON file: all rows
 * up to `rows` are settled, with the counts they gave. It belongs to one input in one state (sizes and
 * modification times of its files), read in one way, and one index; anything else about it that does not fit means starting over, which is
 * safe because an upsert replaces by `doc_id`. Removed when the import reaches the end.
 */
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { CommandFailure, messageOf } from '../failure.ts';
import type { DocumentProblem } from './document.ts';

export interface ImportPosition {
  /** Number of the last row up to which everything is settled; 0 = nothing is. */
  readonly rows: number;
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
export const startState: ImportState = { position: { rows: 0, done: 0, failed: 0 }, problems: [] };

const stateSchema = z.object({
  format: z.literal('maxsimd-import-2'),
  owner: z.string(),
  rows: z.number().int().min(0),
  done: z.number().int().min(0),
  failed: z.number().int().min(0),
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
  /** Defaults to a hidden file beside the input, one for each index. */
  readonly stateFile?: string | undefined;
}

export class Checkpoint {
  readonly file: string;
  readonly #owner: string;

  constructor(options: CheckpointOptions) {
    const source = path.resolve(options.source);
    const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);
    const target = digest(`${options.url} ${options.indexId}`);
    const input = options.files.map((file) => {
      const { size, mtimeMs } = statSync(file);
      return `${path.relative(source, path.resolve(file))} ${size} ${mtimeMs}`;
    });
    this.#owner = `${target} ${digest([JSON.stringify(options.reading), ...input].join('\n'))}`;
    this.file =
      options.stateFile ??
      path.join(path.dirname(source), `.${path.basename(source)}.${target}.maxsimd-import`);
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
    const { rows, done, failed, problems } = result.data;
    return {
      position: { rows, done, failed },
      problems: problems.map(({ file, line, docId, error }) => ({ file, line, docId, error })),
    };
  }

  /** Replaces the file in one step: whenever we are killed, the old or the new one is there, whole. */
  save({ position, problems }: ImportState): void {
    const temporary = `${this.file}.${process.pid}`;
    try {
      writeFileSync(
        temporary,
        JSON.stringify({ format: 'maxsimd-import-2', owner: this.#owner, ...position, problems }),
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
