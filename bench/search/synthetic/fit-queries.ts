/** How the rows of real queries lie around the rows that match them best, in their best chunk of the corpus. */
import { dequantised, norm, dot } from '../../lib/vectors.ts';
import type { NativeEngine } from '../../../src/index/engine/native.ts';
import { nearest, type Clusters } from './clusters.ts';
import { rowOf, rowsOf, runsOf, type Corpus, type Query } from '../corpus.ts';
import { cholesky, covariance, groupMeans, minus } from './gaussians.ts';
import type { SyntheticStatistics } from './synthetic-statistics.ts';

type QueryArrays = Pick<
  SyntheticStatistics['arrays'],
  'queryWords' | 'queryLengths' | 'queryBias' | 'querySpread' | 'queryRowSpread'
>;

export interface QueryFitOptions {
  readonly native: NativeEngine;
  readonly corpus: Corpus;
  readonly wordClusters: Clusters;
  /** Rows of each word cluster in the sample. */
  readonly sizes: Float32Array;
  readonly rotate: (rows: Float32Array) => Float32Array;
}

const queriesMax = 150;
const scanRows = 40_000;

export async function fitQueries(
  options: QueryFitOptions,
): Promise<{ readonly slope: number; readonly arrays: QueryArrays }> {
  const { native, corpus, wordClusters, sizes, rotate } = options;
  const { dim } = corpus;
  const queries = corpus.queries.filter((_, at) => at % Math.ceil(corpus.queries.length / queriesMax) === 0);
  const best = await bestDocuments(native, corpus, queries);
  const pairs: Pairs = { asked: [], matched: [], lengths: [], queryOf: [] };
  for (const [at, query] of queries.entries()) {
    await addPairs(pairs, options, { query, at, document: best[at]! });
  }
  const count = pairs.queryOf.length;
  const asked = rotate(joined(pairs.asked, dim));
  const matches = joined(pairs.matched, dim);
  const matched = rotate(matches);
  const all = new Uint32Array(count);
  const askedMean = groupMeans(asked, all, 1, dim).means;
  const matchedMean = groupMeans(matched, all, 1, dim).means;
  const a = minus(asked, askedMean, all, dim);
  const b = minus(matched, matchedMean, all, dim);
  const slope = dot(a, b) / dot(b, b);
  const errors = a.map((value, i) => value - slope * b[i]!);
  const shared = groupMeans(errors, pairs.queryOf, queries.length, dim).means;
  const own = minus(errors, shared, pairs.queryOf, dim);
  const clusterOf = await nearest(native, wordClusters, matches, dim);
  return {
    slope,
    arrays: {
      queryBias: askedMean.map((value, d) => value - slope * matchedMean[d]!),
      querySpread: cholesky(covariance(shared, dim), dim),
      queryRowSpread: cholesky(covariance(own, dim), dim),
      ...perWord(clusterOf, pairs.lengths, sizes),
    },
  };
}

interface Pairs {
  /** Unit query rows and the rows they match. */
  readonly asked: Float32Array[];
  readonly matched: Float32Array[];
  readonly lengths: number[];
  readonly queryOf: number[];
}

async function addPairs(
  pairs: Pairs,
  { native, corpus }: QueryFitOptions,
  { query, at, document }: { readonly query: Query; readonly at: number; readonly document: number },
): Promise<void> {
  const { dim } = corpus;
  const matrices = corpus.read(document, document + 1);
  const chunkRows = rowsOf(corpus, document);
  const offsets = new Float32Array(query.rows);
  const request = { query: query.vectors, offsets, dim, components: true };
  const { scores, documentTokens } = await native.score(request, { chunkRows, ...matrices });
  const chunk = scores.indexOf(Math.max(...scores));
  const first = chunkRows.subarray(0, chunk).reduce((sum, rows) => sum + rows, 0);
  const values = dequantised(matrices, dim, corpus.centring);
  const own = values.subarray(first * dim, (first + chunkRows[chunk]!) * dim);
  for (let row = 0; row < query.rows; row++) {
    const vector = query.vectors.subarray(row * dim, (row + 1) * dim);
    const length = norm(vector);
    if (length < 1e-6) continue;
    const token = documentTokens![chunk * query.rows + row]!;
    const match = own.slice(token * dim, (token + 1) * dim);
    pairs.asked.push(vector.map((value) => value / length));
    pairs.matched.push(match);
    pairs.lengths.push(length);
    pairs.queryOf.push(at);
  }
}

/** Document of the best chunk of each query. */
async function bestDocuments(
  native: NativeEngine,
  corpus: Corpus,
  queries: readonly Query[],
): Promise<readonly number[]> {
  const best = queries.map(() => ({ score: -Infinity, document: 0 }));
  for (const { from, to } of runsOf(corpus, scanRows)) {
    const chunkRows = Uint32Array.from(
      { length: to - from },
      (_, i) => rowOf(corpus, from + i + 1) - rowOf(corpus, from + i),
    );
    // Documents as one chunk each: the best chunk is found among those of the best few anyway.
    const chunks = { chunkRows, ...corpus.read(from, to) };
    for (const [at, query] of queries.entries()) {
      const request = {
        query: query.vectors,
        offsets: new Float32Array(query.rows),
        dim: corpus.dim,
        components: false,
      };
      const { scores } = await native.score(request, chunks);
      for (const [i, score] of scores.entries()) {
        if (score > best[at]!.score) best[at] = { score, document: from + i };
      }
    }
  }
  return best.map(({ document }) => document);
}

/** How often each word cluster is asked for by how often it occurs, and the mean length of such rows. */
function perWord(
  clusterOf: Uint32Array,
  lengths: readonly number[],
  sizes: Float32Array,
): Pick<QueryArrays, 'queryWords' | 'queryLengths'> {
  const prior = 5;
  const asked = new Float64Array(sizes.length);
  const sums = new Float64Array(sizes.length);
  for (const [at, word] of clusterOf.entries()) {
    asked[word]! += 1;
    sums[word]! += lengths[at]!;
  }
  const all = sizes.reduce((sum, size) => sum + size, 0);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  const expected = (word: number): number => (sizes[word]! / all) * clusterOf.length;
  return {
    queryWords: Float32Array.from(asked, (count, word) => (count + prior) / (expected(word) + prior)),
    queryLengths: Float32Array.from(sums, (sum, word) => (sum + prior * mean) / (asked[word]! + prior)),
  };
}

function joined(rows: readonly Float32Array[], dim: number): Float32Array {
  const all = new Float32Array(rows.length * dim);
  for (const [at, row] of rows.entries()) all.set(row, at * dim);
  return all;
}
