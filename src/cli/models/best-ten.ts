/**
 * How many of the best ten passages by f32 rows are among the best ten by rows of few bits, for `maxsimd models add`. Each text
 * runs once. Its f32 rows are scored by MaxSim here, and then quantised as an encoder does. The engine scores those as the
 * service does, with queries of 8 bits.
 *
 * `sample-texts.txt.gz` has the form of `--texts`. Its texts are cut from the country profiles of the CIA World Factbook
 * ("Background"), which are in the public domain. Each query is a sentence that was taken out of a passage.
 */
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { quantizeFewBits, Rotation } from '../../encoder/inference/few-bits.ts';
import { halfBits } from '../../encoder/inference/quantize.ts';
import { SessionPool } from '../../encoder/inference/session-pool.ts';
import { documentSequence, querySequence, type Sequence } from '../../encoder/model/colbert-rules.ts';
import type { ServedModel, SessionModel } from '../../encoder/model/served-model.ts';
import { rowBytes, type RowShape } from '../../contracts/row-shape.ts';
import { inputError, messageOf } from '../failure.ts';
import { withEngine } from '../index/index-access.ts';
import { startProgress } from '../progress.ts';

export interface SampleTexts {
  readonly queries: readonly string[];
  readonly passages: readonly string[];
}

export const queryCount = 100;
export const passagesMin = 1_000;
export const passagesMax = 10_000;
/** As in an index of default chunks. A longer passage is cut. */
const passageTokensMax = 256;
const best = 10;
const stuckMs = 240_000;
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

export interface ProgressTo {
  readonly stderr: NodeJS.WriteStream;
  readonly interruption: () => AbortSignal;
}

/** The mean over the queries of how many of the best ten are found. */
export async function bestTenFound(
  model: ServedModel,
  { queries, passages }: SampleTexts,
  { stderr, interruption }: ProgressTo,
): Promise<number> {
  const signal = interruption();
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
    for await (const rows of rowsOf(model.session, querySequences(model, queries))) {
      onText();
      queryRows.push(rows);
    }
    const exact = queryRows.map(() => new Float64Array(passages.length));
    const stored: StoredRows[] = [];
    const mean = rotatedMean(model);
    // Weights are for rows of queries alone.
    const unweighted = { ...model.session, tokenWeightOutput: undefined };
    for await (const rows of rowsOf(unweighted, passageSequences(model, passages))) {
      onText();
      const tiled = inTiles(rows, model.dim);
      for (const [i, query] of queryRows.entries())
        exact[i]![stored.length] = maxSim(query, tiled, model.dim);
      for (const at of rows.keys()) rows[at]! -= mean[at % mean.length]!;
      stored.push(storedRows(rows, model));
    }
    // Centring subtracts the same from all scores of a query, so it changes no ranking.
    const ofFewBits = await scoresByEngine(model, queryRows, stored);
    const found = exact.map((scores, i) => common(bestOf(scores), bestOf(ofFewBits[i]!)));
    return found.reduce((sum, each) => sum + each, 0) / queries.length;
  } finally {
    progress.stop();
  }
}

/** The centring mean [dim], rotated like rows; zeros without one. */
function rotatedMean({ dim, session }: ServedModel): Float32Array {
  const mean = Float32Array.from(session.centring ?? new Float32Array(dim));
  new Rotation(dim).apply(mean);
  return mean;
}

function querySequences({ rules, tokenizer }: ServedModel, queries: readonly string[]): readonly Sequence[] {
  return queries.map((text) => querySequence(rules, tokenizer.encode(rules.queryLead + text)));
}

function passageSequences(model: ServedModel, passages: readonly string[]): readonly Sequence[] {
  const { rules, tokenizer, windowTokensMax } = model;
  const tokensMax = Math.min(passageTokensMax, windowTokensMax);
  return passages.map((text) =>
    documentSequence(rules, tokenizer.encode(rules.documentLead + text).subarray(0, tokensMax)),
  );
}

/**
 * The f32 rows of each text, rotated like those of a query. A text runs alone, and while the caller works on its rows the
 * next one runs.
 */
async function* rowsOf(session: SessionModel, sequences: readonly Sequence[]): AsyncGenerator<Float32Array> {
  const pool = await SessionPool.open({
    models: [session],
    provider: 'cpu',
    deviceId: 0,
    threads: availableParallelism(),
    workers: 1,
    stuckMs,
    // The batch that runs fails with the reason.
    onFatal: () => undefined,
  });
  const run = async ({ ids, attended, kept, rows }: Sequence): Promise<Float32Array> => {
    const lengths = Uint32Array.of(ids.length);
    const padded = { paddedLength: ids.length, paddedTexts: 1 };
    const batch = { modelIndex: 0, ids, lengths, attended: Uint32Array.of(attended), kept, rows, ...padded };
    // Documents of few bits come quantised from a session.
    const { output } = await pool.run({ kind: 'query', ...batch });
    return output.vectors as Float32Array;
  };
  try {
    let next = run(sequences[0]!);
    for (let i = 1; i <= sequences.length; i += 1) {
      const rows = await next;
      if (i < sequences.length) {
        next = run(sequences[i]!);
        // It is awaited after the caller's work, or never.
        next.catch(() => undefined);
      }
      yield rows;
    }
  } finally {
    await pool.close();
  }
}

interface StoredRows {
  readonly vectors: Int8Array;
  readonly scales: Uint16Array;
}

function storedRows(rows: Float32Array, shape: RowShape): StoredRows {
  const count = rows.length / shape.dim;
  const vectors = new Int8Array(count * rowBytes(shape));
  const scales = new Float32Array(count);
  quantizeFewBits(rows, shape, vectors, scales);
  return { vectors, scales: halfBits(scales) };
}

/** The scores of all passages, for each query. */
async function scoresByEngine(
  { dim, rowBits }: RowShape,
  queries: readonly Float32Array[],
  passages: readonly StoredRows[],
): Promise<readonly Float32Array[]> {
  const chunks = {
    chunkRows: Uint32Array.from(passages, ({ scales }) => scales.length),
    vectors: new Int8Array(joined(passages.map(({ vectors }) => vectors))),
    scales: new Uint16Array(joined(passages.map(({ scales }) => scales))),
  };
  return withEngine({ MAXSIMD_ENGINE_THREADS: 0 }, async (engine) => {
    const all: Float32Array[] = [];
    for (const query of queries) {
      const offsets = new Float32Array(query.length / dim);
      const { scores } = await engine.score({ query, offsets, dim, rowBits, components: false }, chunks);
      all.push(scores);
    }
    return all;
  });
}

/** The bytes of arrays that are the whole of their buffers. */
function joined(arrays: readonly (Int8Array | Uint16Array)[]): ArrayBuffer {
  return new Uint8Array(Buffer.concat(arrays.map(({ buffer }) => new Uint8Array(buffer)))).buffer;
}

/** Rows up to a multiple of four. The first row is repeated, which changes no maximum. */
function inTiles(rows: Float32Array, dim: number): Float32Array {
  const tile = 4 * dim;
  const tiled = new Float32Array(Math.ceil(rows.length / tile) * tile);
  tiled.set(rows);
  for (let at = rows.length; at < tiled.length; at += dim) tiled.set(rows.subarray(0, dim), at);
  return tiled;
}

/** Four rows of the passage at a time: that takes a quarter of the time of one. */
function maxSim(query: Float32Array, tiled: Float32Array, dim: number): number {
  let score = 0;
  for (let q = 0; q < query.length; q += dim) {
    let most = Number.NEGATIVE_INFINITY;
    for (let first = 0; first < tiled.length; first += 4 * dim) {
      const [second, third, fourth] = [first + dim, first + 2 * dim, first + 3 * dim];
      let [a, b, c, d] = [0, 0, 0, 0];
      for (let i = 0; i < dim; i += 1) {
        const value = query[q + i]!;
        a += value * tiled[first + i]!;
        b += value * tiled[second + i]!;
        c += value * tiled[third + i]!;
        d += value * tiled[fourth + i]!;
      }
      most = Math.max(most, a, b, c, d);
    }
    score += most;
  }
  return score;
}

/** The passages of the highest scores. The earlier of two equal ones goes first. */
function bestOf(scores: Float64Array | Float32Array): readonly number[] {
  return [...scores.keys()].toSorted((a, b) => scores[b]! - scores[a]!).slice(0, best);
}

function common(one: readonly number[], other: readonly number[]): number {
  return one.filter((passage) => other.includes(passage)).length;
}
