/**
 * Measures the statistics of real embeddings that the generator needs.
 *
 * Topics are clusters of chunk means and say which words a chunk has; word clusters are clusters of token vectors. What
 * these leave is split into what a chunk's tokens have in common and the rest. Words are distinguished by a finer clustering.
 */
import { dequantised } from '../../lib/vectors.ts';
import { createEngine, type NativeEngine } from '../../../src/index/engine/native.ts';
import { tool } from '../../lib/benchmark.ts';
import { cluster, nearest } from './clusters.ts';
import { chunksOf, documentsOf, rowsOf, tokenVectorsOf, type Corpus } from '../corpus.ts';
import { openEmbeddings } from '../embedding-directory.ts';
import { fitQueries } from './fit-queries.ts';
import { cholesky, covariance, eigen, groupMeans, minus, rotated, sharedVariance } from './gaussians.ts';
import { statisticsFile } from './synthetic.ts';
import { writeStatistics, type SyntheticStatistics } from './synthetic-statistics.ts';

const topics = 128;
const words = 1536;
const wordsPerCluster = 8;
const rowsMax = 500_000;
/** Not measured but chosen so that candidate recall comes near that of the real vectors (`resemblance.ts`). */
const calibrated = {
  subjectsPerTopic: 40,
  subjectWords: 60,
  subjectShiftShare: 0,
  subjectShare: 0.5,
  noiseScale: 1,
  queryNoise: 0.7,
};
const quantilePoints = 33;
const seed = 7;

export const searchFit = tool({
  usage: 'search-fit <directory> [file]',
  summary:
    'measures the statistics that synthetic embeddings are made from; replaces those in use unless a file is given',
  settings: {},
  run: async (_, directory = '', file = statisticsFile) => {
    const engine = createEngine({ threads: 0, kernel: 'auto' });
    try {
      writeStatistics(file, await fit(engine, openEmbeddings(directory, undefined)));
    } finally {
      engine.close();
    }
  },
});

async function fit(native: NativeEngine, corpus: Corpus): Promise<SyntheticStatistics> {
  const { dim } = corpus;
  const { rows, chunkOf, documentOf } = takeSample(corpus);
  const chunks = groupMeans(rows, chunkOf, documentOf.length, dim);
  const topicOf = await clustersOf(native, chunks.means, dim, topics);
  const wordClusters = await cluster(native, rows, dim, { count: words, seed });
  const clusterOf = await nearest(native, wordClusters, rows, dim);
  const wordGroups = groupMeans(rows, clusterOf, words, dim);
  const unexplained = minus(rows, wordGroups.means, clusterOf, dim);

  const shifts = groupMeans(unexplained, chunkOf, documentOf.length, dim).means;
  const topicShifts = groupMeans(shifts, topicOf, topics, dim);
  const aroundTopic = minus(shifts, topicShifts.means, topicOf, dim);
  const residuals = minus(unexplained, shifts, chunkOf, dim);

  const wordOf = await clustersOf(native, rows, dim, words * wordsPerCluster);
  const pairedWith = (group: (row: number) => number): Float64Array =>
    Float64Array.from(wordOf, (word, row) => group(row) * words * wordsPerCluster + word);
  const wordShare = sharedVariance(residuals, wordOf, dim);
  const topicWordOf = pairedWith((row) => topicOf[chunkOf[row]!]!);
  const topicWordShare = sharedVariance(residuals, topicWordOf, dim);
  const chunkWordOf = pairedWith((row) => chunkOf[row]!);
  const chunkWordShare = sharedVariance(residuals, chunkWordOf, dim);

  const { vectors: axes, values: variances } = eigen(covariance(residuals, dim), dim);
  const rotate = (given: Float32Array): Float32Array => rotated(given, axes, dim);
  const topicWords = new Float32Array(topics * words);
  for (const [row, word] of clusterOf.entries()) topicWords[topicOf[chunkOf[row]!]! * words + word]! += 1;
  const asked = await fitQueries({ native, corpus, wordClusters, sizes: wordGroups.sizes, rotate });
  return {
    source: `${corpus.description} (${chunksOf(corpus)} chunks)`,
    dim,
    topics,
    words,
    wordsPerCluster,
    scalars: {
      documentShare: Math.max(0, sharedVariance(aroundTopic, documentOf, dim)),
      repeatChance: repeatedShare(chunkWordOf),
      wordShare,
      topicWordShare: Math.max(0, topicWordShare - wordShare),
      chunkWordShare: Math.max(0, chunkWordShare - Math.max(wordShare, topicWordShare)),
      querySlope: asked.slope,
      ...calibrated,
    },
    arrays: {
      centring: rotate(corpus.centring),
      topicChances: topicShifts.sizes.map((size) => size / topicOf.length),
      topicShifts: rotate(topicShifts.means),
      chunkSpread: cholesky(covariance(rotate(aroundTopic), dim), dim),
      wordCentres: rotate(wordGroups.means),
      wordScales: relativeSpread(residuals, clusterOf, dim),
      topicWords: rootChances(topicWords, wordGroups.sizes),
      residualSpread: Float32Array.from(variances, (variance) => Math.sqrt(Math.max(0, variance))),
      chunkRows: relativeRows(corpus),
      documentChunks: quantiles(
        Array.from({ length: documentsOf(corpus) }, (_, d) => rowsOf(corpus, d).length),
      ),
      queryRows: quantiles(corpus.queries.map((query) => query.rows)),
      ...asked.arrays,
    },
  };
}

async function clustersOf(
  native: NativeEngine,
  rows: Float32Array,
  dim: number,
  count: number,
): Promise<Uint32Array> {
  return nearest(native, await cluster(native, rows, dim, { count, seed }), rows, dim);
}

/** Unit vectors of documents spread over the corpus, chunk of every row, document of every chunk. */
function takeSample(corpus: Corpus): {
  readonly rows: Float32Array;
  readonly chunkOf: Uint32Array;
  readonly documentOf: Uint32Array;
} {
  const every = Math.max(1, Math.ceil(tokenVectorsOf(corpus) / rowsMax));
  const parts: Float32Array[] = [];
  const chunkOf: number[] = [];
  const documentOf: number[] = [];
  for (let document = 0; document < documentsOf(corpus); document += every) {
    parts.push(dequantised(corpus.read(document, document + 1), corpus.dim, corpus.centring));
    for (const rows of rowsOf(corpus, document)) {
      for (let row = 0; row < rows; row++) chunkOf.push(documentOf.length);
      documentOf.push(document);
    }
  }
  const rows = new Float32Array(chunkOf.length * corpus.dim);
  let at = 0;
  for (const part of parts) {
    rows.set(part, at);
    at += part.length;
  }
  return { rows, chunkOf: Uint32Array.from(chunkOf), documentOf: Uint32Array.from(documentOf) };
}

/** Share of the rows whose chunk has had their word before. */
function repeatedShare(chunkWordOf: Float64Array): number {
  return 1 - new Set(chunkWordOf).size / chunkWordOf.length;
}

/** Standard deviation of each group's rows by that of all. */
function relativeSpread(residuals: Float32Array, groupOf: Uint32Array, dim: number): Float32Array {
  const squares = new Float64Array(words);
  const sizes = new Float64Array(words);
  for (const [row, group] of groupOf.entries()) {
    for (let at = row * dim; at < (row + 1) * dim; at++) squares[group]! += residuals[at]! * residuals[at]!;
    sizes[group]! += 1;
  }
  const all = squares.reduce((sum, square) => sum + square, 0) / groupOf.length;
  return Float32Array.from(squares, (square, group) => Math.sqrt(square / Math.max(1, sizes[group]!) / all));
}

/** Counts [topics x words] to square roots of chances; a few draws from all topics stand in where little was seen. */
function rootChances(counts: Float32Array, sizes: Float32Array): Float32Array {
  const prior = 50;
  const all = sizes.reduce((sum, size) => sum + size, 0);
  const chances = counts.map((count, at) => count + (prior * sizes[at % words]!) / all);
  for (let from = 0; from < chances.length; from += words) {
    const run = chances.subarray(from, from + words);
    const total = run.reduce((sum, chance) => sum + chance, 0);
    for (let at = 0; at < words; at++) run[at] = Math.sqrt(run[at]! / total);
  }
  return chances;
}

function relativeRows({ chunkRows }: Corpus): Float32Array {
  const count = chunkRows.length - 1;
  const mean = chunkRows[count]! / count;
  return quantiles(
    Array.from({ length: count }, (_, chunk) => (chunkRows[chunk + 1]! - chunkRows[chunk]!) / mean),
  );
}

/** Means of equal shares of the sorted values: drawing between them keeps the mean. */
function quantiles(values: readonly number[]): Float32Array {
  const sorted = values.toSorted((a, b) => a - b);
  return Float32Array.from({ length: quantilePoints }, (_, point) => {
    const position = (point / (quantilePoints - 1)) * (sorted.length - 1);
    return sorted[Math.round(position)]!;
  });
}
