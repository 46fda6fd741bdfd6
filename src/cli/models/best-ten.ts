/**
 * How many of the best ten passages by f32 rows are among the best ten by stored rows, for `maxsimd models add`. Each text
 * runs once. Its f32 rows are scored by MaxSim here, and then stored as an encoder does. The engine scores those as the
 * service does, with queries of 8 bits.
 *
 * `sample-texts.txt.gz` has the form of `--texts`. Its texts are cut from the country profiles of the CIA World Factbook
 * ("Background"), which are in the public domain. Each query is a sentence that was taken out of a passage.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { RowMaker, Rotation } from '../../encoder/inference/rows.ts';
import type { ServedModel } from '../../encoder/model/served-model.ts';
import { inputError, messageOf } from '../failure.ts';
import { withEngine } from '../index/index-access.ts';
import { startProgress } from '../progress.ts';
import { passageRows, queryRowsOf } from './f32-rows.ts';
import { inTiles, maxSim, scoresByEngine, storedRows, type StoredRows } from './scoring.ts';

export interface SampleTexts {
  readonly queries: readonly string[];
  readonly passages: readonly string[];
}

export const queryCount = 100;
export const passagesMin = 1_000;
export const passagesMax = 10_000;
const best = 10;
const shipped = path.join(import.meta.dirname, 'sample-texts.txt.gz');

/** Reads a file with a text a line, plain or gzipped: the queries, then the passages. */
export async function readSampleTexts(file = shipped): Promise<SampleTexts> {
  let content: Buffer;
  try {
    content = await readFile(file);
    if (file.endsWith('.gz')) content = await promisify(gunzip)(content);
  } catch (error) {
    throw inputError(`cannot read ${file}: ${messageOf(error)}`, error);
  }
  const texts = content
    .toString('utf8')
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '');
  const least = queryCount + passagesMin;
  if (texts.length < least) {
    throw inputError(
      `${file} has ${texts.length} texts, and at least ${least} are needed: ${queryCount} queries, then ${passagesMin} passages`,
    );
  }
  return {
    queries: texts.slice(0, queryCount),
    passages: texts.slice(queryCount, queryCount + passagesMax),
  };
}

export interface Running {
  /** Shows progress. */
  readonly stderr: NodeJS.WriteStream;
  readonly signal: AbortSignal;
}

/** The mean over the queries of how many of the best ten are found. */
export async function bestTenFound(
  model: ServedModel,
  { queries, passages }: SampleTexts,
  { stderr, signal }: Running,
): Promise<number> {
  const texts = queries.length + passages.length;
  const progress = startProgress(stderr, texts);
  let done = 0;
  const onText = (): void => {
    signal.throwIfAborted();
    done += 1;
    progress.update(done, `${done} of ${texts} texts encoded`);
  };
  try {
    const queryRows: Float32Array[] = [];
    for await (const rows of queryRowsOf(model, queries)) {
      onText();
      queryRows.push(rows);
    }
    const exact = queryRows.map(() => new Float64Array(passages.length));
    const stored: StoredRows[] = [];
    const maker = new RowMaker(model.session);
    for await (const rows of passageRows(model, passages)) {
      onText();
      const tiled = inTiles(rows, model.dim);
      for (const [i, query] of queryRows.entries())
        exact[i]![stored.length] = maxSim(query, tiled, model.dim);
      stored.push(storedRows(maker.make(rows, Uint32Array.of(rows.length / model.dim))));
    }
    if (model.rowBits < 8) {
      const rotation = new Rotation(model.dim);
      for (const rows of queryRows) rotation.apply(rows);
    }
    // Centring subtracts the same from all scores of a query, so it changes no ranking.
    const byStored = await withEngine({ MAXSIMD_ENGINE_THREADS: 0 }, (engine) =>
      scoresByEngine(engine, model, queryRows, stored),
    );
    const found = exact.map((scores, i) => common(bestOf(scores), bestOf(byStored[i]!)));
    return found.reduce((sum, each) => sum + each, 0) / queries.length;
  } finally {
    progress.stop();
  }
}

/** The passages of the highest scores. The earlier of two equal ones goes first. */
function bestOf(scores: Float64Array | Float32Array): readonly number[] {
  return [...scores.keys()].toSorted((a, b) => scores[b]! - scores[a]!).slice(0, best);
}

function common(one: readonly number[], other: readonly number[]): number {
  return one.filter((passage) => other.includes(passage)).length;
}
