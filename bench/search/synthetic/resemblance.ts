/**
 * Whether synthetic embeddings make candidate generation as hard as real ones do.
 *
 * Over as many chunks of the same mean length of each: the share of the exact top 10 and top 100 chunks among the best
 * 200 and 500 by mean-pooled vectors, and by MaxSim over the codes of centroids fitted on the corpus.
 */
import { dequantised, norm, dot } from '../../lib/vectors.ts';
import { createEngine, type NativeEngine } from '../../../src/index/engine/native.ts';
import { tool } from '../../lib/benchmark.ts';
import { mean } from '../../lib/statistics.ts';
import { cluster, nearest } from './clusters.ts';
import { chunksOf, runsOf, sampleRows, tokenVectorsOf, type Corpus, type Query } from '../corpus.ts';
import { openEmbeddings } from '../embedding-directory.ts';
import { groupMeans } from './gaussians.ts';
import { statisticsFile, synthesise } from './synthetic.ts';
import { readStatistics } from './synthetic-statistics.ts';

const centroids = 4096;
const fitRows = 200_000;
const scanRows = 40_000;
const tops = [10, 100] as const;
const kept = [200, 500] as const;

type Shares = Record<string, number>;

export const searchResemblance = tool({
  usage: 'search-resemblance <directory> <chunks> [queries] [statistics]',
  summary: 'whether synthetic embeddings make candidate generation as hard as real ones',
  settings: {},
  run: async (_, directory = '', chunks = '', queriesText = '100', statistics = statisticsFile) => {
    const wanted = Number(queriesText);
    const engine = createEngine({ threads: 0, kernel: 'auto' });
    try {
      const real = openEmbeddings(directory, Number(chunks));
      const meanRows = tokenVectorsOf(real) / chunksOf(real);
      const options = { chunks: chunksOf(real), meanRows, queries: wanted, seed: 1 };
      const every = Math.ceil(real.queries.length / wanted);
      const queries = real.queries.filter((query, at) => at % every === 0);
      for (const corpus of [{ ...real, queries }, synthesise(options, readStatistics(statistics))]) {
        const described = await describe(engine, corpus);
        process.stdout.write(`${corpus.description}: ${JSON.stringify(described, null, 2)}\n`);
      }
    } finally {
      engine.close();
    }
  },
});

async function describe(native: NativeEngine, corpus: Corpus): Promise<Shares> {
  const scores = await exactScores(native, corpus);
  const { pooled, coded, residual } = await approximateScores(native, corpus);
  return {
    chunks: chunksOf(corpus),
    ...shape(scores, corpus.queries),
    residual_of_codes: residual,
    ...shares('mean pooling', scores, pooled),
    ...shares('centroid codes', scores, coded),
  };
}

/** f32 [chunks] of every query. */
async function exactScores(native: NativeEngine, corpus: Corpus): Promise<readonly Float32Array[]> {
  const scores = corpus.queries.map(() => new Float32Array(chunksOf(corpus)));
  for (const { from, to } of runsOf(corpus, scanRows)) {
    const first = corpus.documentChunks[from]!;
    const chunkRows = Uint32Array.from(
      { length: corpus.documentChunks[to]! - first },
      (_, chunk) => corpus.chunkRows[first + chunk + 1]! - corpus.chunkRows[first + chunk]!,
    );
    const chunks = { chunkRows, ...corpus.read(from, to) };
    for (const [at, { vectors, rows }] of corpus.queries.entries()) {
      const request = { query: vectors, offsets: new Float32Array(rows), dim: corpus.dim, components: false };
      scores[at]!.set((await native.score(request, chunks)).scores, first);
    }
  }
  return scores;
}

interface Approximate {
  readonly pooled: readonly Float32Array[];
  readonly coded: readonly Float32Array[];
  /** Share of the squared length of vectors that their centroid's direction does not explain. */
  readonly residual: number;
}

async function approximateScores(native: NativeEngine, corpus: Corpus): Promise<Approximate> {
  const { dim, queries } = corpus;
  const fitted = await cluster(native, sampleRows(corpus, fitRows), dim, { count: centroids, seed: 1 });
  const tables = queries.map((query) => productsOf(query, fitted.directions, dim));
  const sums = queries.map(
    ({ vectors }) => groupMeans(vectors, new Uint32Array(vectors.length / dim), 1, dim).means,
  );
  const pooled = queries.map(() => new Float32Array(chunksOf(corpus)));
  const coded = queries.map(() => new Float32Array(chunksOf(corpus)));
  let squares = 0;
  let explained = 0;
  for (const { from, to } of runsOf(corpus, scanRows)) {
    const rows = dequantised(corpus.read(from, to), dim);
    const codes = await nearest(native, fitted, rows, dim);
    for (const [row, code] of codes.entries()) {
      const vector = rows.subarray(row * dim, (row + 1) * dim);
      squares += norm(vector) ** 2;
      explained += dot(vector, fitted.directions.subarray(code * dim, (code + 1) * dim)) ** 2;
    }
    const firstRow = corpus.chunkRows[corpus.documentChunks[from]!]!;
    for (let chunk = corpus.documentChunks[from]!; chunk < corpus.documentChunks[to]!; chunk++) {
      const begin = corpus.chunkRows[chunk]! - firstRow;
      const end = corpus.chunkRows[chunk + 1]! - firstRow;
      const own = rows.subarray(begin * dim, end * dim);
      const pooledRows = groupMeans(own, new Uint32Array(end - begin), 1, dim).means;
      const length = norm(pooledRows) || 1;
      for (const [at, query] of queries.entries()) {
        pooled[at]![chunk] = dot(pooledRows, sums[at]!) / length;
        coded[at]![chunk] = codeScore(tables[at]!, query.rows, codes.subarray(begin, end));
      }
    }
  }
  return { pooled, coded, residual: 1 - explained / squares };
}

/** Products of every centroid with every query row, f32 [centroids x rows]. */
function productsOf({ vectors, rows }: Query, directions: Float32Array, dim: number): Float32Array {
  const table = new Float32Array((directions.length / dim) * rows);
  for (let at = 0; at < table.length; at++) {
    const centroid = Math.floor(at / rows) * dim;
    const row = (at % rows) * dim;
    table[at] = dot(vectors.subarray(row, row + dim), directions.subarray(centroid, centroid + dim));
  }
  return table;
}

function codeScore(table: Float32Array, rows: number, codes: Uint32Array): number {
  let total = 0;
  for (let row = 0; row < rows; row++) {
    let best = -Infinity;
    for (let token = 0; token < codes.length; token++) {
      const value = table[codes[token]! * rows + row]!;
      if (value > best) best = value;
    }
    total += best;
  }
  return total;
}

/** How far the best chunks stand out: mean gaps between ranks by the standard deviation of all scores. */
function shape(scores: readonly Float32Array[], queries: readonly Query[]): Shares {
  const gaps = scores.map((values) => {
    const sorted = values.toSorted((a, b) => b - a);
    const centre = mean([...values]);
    const deviation = Math.sqrt(mean(Array.from(values, (value) => (value - centre) ** 2)));
    return [0, 9, 99].map((rank) => (sorted[rank]! - centre) / deviation);
  });
  const meanOf = (at: number): number => mean(gaps.map((gap) => gap[at]!));
  return {
    query_rows: mean(queries.map(({ rows }) => rows)),
    first_sigma: meanOf(0),
    tenth_sigma: meanOf(1),
    hundredth_sigma: meanOf(2),
  };
}

function shares(name: string, exact: readonly Float32Array[], approximate: readonly Float32Array[]): Shares {
  const result: Shares = {};
  for (const top of tops) {
    for (const count of kept) {
      const found = exact.map((scores, at) => {
        const candidates = new Set(bestOf(approximate[at]!, count));
        return bestOf(scores, top).filter((chunk) => candidates.has(chunk)).length / top;
      });
      result[`${name}, top ${top} in ${count}`] = mean(found);
    }
  }
  return result;
}

function bestOf(scores: Float32Array, count: number): readonly number[] {
  const order = Uint32Array.from(scores, (_, at) => at);
  return [...order.toSorted((a, b) => scores[b]! - scores[a]!).subarray(0, count)];
}
