/**
 * Measures the statistics of real embeddings that the generator needs:
 *
 *   node bench/search/fit-statistics.ts DIRECTORY FILE
 *
 * Topics are clusters of chunk means, word clusters are clusters of deviations from them; what is left is described by
 * its covariance. Words are told apart by a second, finer clustering.
 */
import { createEngine, type NativeEngine } from '../../src/index/native.ts';
import { cluster, nearest } from './clusters.ts';
import { dequantised, documentsOf, rowsOf, tokenVectorsOf, type Corpus } from './corpus.ts';
import { openEmbeddings } from './embedding-directory.ts';
import { fitQueries } from './fit-queries.ts';
import { cholesky, covariance, eigen, groupMeans, minus, rotated, sharedVariance } from './gaussians.ts';
import { writeStatistics, type SyntheticStatistics } from './synthetic-statistics.ts';

const topics = 256;
const words = 768;
const wordsPerCluster = 16;
const rowsMax = 600_000;
const quantilePoints = 33;
const seed = 7;

const [directory = '', file = ''] = process.argv.slice(2);
const engine = createEngine({ threads: 0, kernel: 'auto' });
try {
  writeStatistics(file, await fit(engine, openEmbeddings(directory, undefined)));
} finally {
  engine.close();
}

async function fit(native: NativeEngine, corpus: Corpus): Promise<SyntheticStatistics> {
  const { dim } = corpus;
  const { rows, chunkOf, documentOf } = takeSample(corpus);
  const chunks = groupMeans(rows, chunkOf, documentOf.length, dim);
  const middle = groupMeans(chunks.means, new Uint32Array(documentOf.length), 1, dim);
  const centred = minus(chunks.means, middle.means, new Uint32Array(documentOf.length), dim);
  const topicOf = await nearest(
    native,
    await cluster(native, centred, dim, { count: topics, seed }),
    centred,
    dim,
  );
  const topicGroups = groupMeans(chunks.means, topicOf, topics, dim);
  const aroundTopic = minus(chunks.means, topicGroups.means, topicOf, dim);

  const deviations = minus(rows, chunks.means, chunkOf, dim);
  const wordClusters = await cluster(native, deviations, dim, { count: words, seed });
  const clusterOf = await nearest(native, wordClusters, deviations, dim);
  const wordGroups = groupMeans(deviations, clusterOf, words, dim);
  const residuals = minus(deviations, wordGroups.means, clusterOf, dim);
  const finer = await cluster(native, deviations, dim, { count: words * wordsPerCluster, seed });
  const wordOf = await nearest(native, finer, deviations, dim);
  const wordShare = sharedVariance(residuals, wordOf, dim);
  const chunkWordOf = chunkOf.map((chunk, row) => chunk * finer.count + wordOf[row]!);
  const chunkWordShare = sharedVariance(residuals, chunkWordOf, dim);

  const { vectors: axes, values: variances } = eigen(covariance(residuals, dim), dim);
  const rotate = (given: Float32Array): Float32Array => rotated(given, axes, dim);
  const topicWords = new Float32Array(topics * words);
  for (const [row, word] of clusterOf.entries()) topicWords[topicOf[chunkOf[row]!]! * words + word]! += 1;
  const asked = await fitQueries({ native, corpus, wordClusters, sizes: wordGroups.sizes, rotate });
  return {
    source: `${corpus.description} (${documentOf.length} chunks)`,
    dim,
    topics,
    words,
    wordsPerCluster,
    scalars: {
      documentShare: Math.max(0, sharedVariance(aroundTopic, documentOf, dim)),
      repeatChance: repeatedShare(chunkWordOf),
      wordShare,
      chunkWordShare: Math.max(0, chunkWordShare - wordShare),
      querySlope: asked.slope,
    },
    arrays: {
      centring: rotate(corpus.centring),
      topicCentres: rotate(topicGroups.means),
      topicChances: topicGroups.sizes.map((size) => size / topicOf.length),
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

/** Unit vectors of documents spread over the corpus, chunk of every row, document of every chunk. */
function takeSample(corpus: Corpus): {
  readonly rows: Float32Array;
  readonly chunkOf: Float64Array;
  readonly documentOf: Float64Array;
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
  return { rows, chunkOf: Float64Array.from(chunkOf), documentOf: Float64Array.from(documentOf) };
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
