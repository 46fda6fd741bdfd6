/**
 * Synthetic embeddings with the measured statistics of real ones. Every document has a seed of its own, so that any of them
 * is made again at any time and none is kept.
 */
import path from 'node:path';
import { seededRandom } from '../../lib/seeded-random.ts';
import { quantiseRow, rowsOf, type Corpus, type Query, type TokenMatrices } from '../corpus.ts';
import { Gaussians, lowerTimes } from './gaussians.ts';
import { readStatistics, type SyntheticStatistics } from './synthetic-statistics.ts';

const statisticsFile = path.join(import.meta.dirname, 'statistics.bin');

interface SyntheticOptions {
  readonly chunks: number;
  /** Mean rows of a chunk. */
  readonly meanRows: number;
  readonly queries: number;
  readonly seed: number;
}

export function synthesise(options: SyntheticOptions): Corpus {
  const statistics = readStatistics(statisticsFile);
  const { chunks, meanRows, queries, seed } = options;
  const shape = shapeOf(statistics, options);
  const generator = new Generator(statistics, seed);
  const corpus: Corpus = {
    description: `synthetic, ${meanRows} rows a chunk, statistics of ${statistics.source}, seed ${seed}`,
    identity: JSON.stringify([chunks, meanRows, seed, statistics.source, statistics.scalars]),
    dim: statistics.dim,
    rowBits: 8,
    ...shape,
    centring: statistics.arrays.centring,
    queries: [],
    read: (from, to) => {
      const made = range(from, to).map((document) => generator.document(document, rowsOf(corpus, document)));
      const first = made[0];
      if (made.length === 1 && first !== undefined) return { vectors: first.vectors, scales: first.scales };
      const rows = made.reduce((sum, { scales }) => sum + scales.length, 0);
      const joined = { vectors: new Int8Array(rows * statistics.dim), scales: new Uint16Array(rows) };
      let row = 0;
      for (const { vectors, scales } of made) {
        joined.vectors.set(vectors, row * statistics.dim);
        joined.scales.set(scales, row);
        row += scales.length;
      }
      return joined;
    },
  };
  const random = seededRandom(seed + 1);
  const asked = range(0, queries).map((number) => {
    const document = Math.floor(random() * (shape.documentChunks.length - 1));
    return generator.query(number, document, rowsOf(corpus, document));
  });
  return { ...corpus, queries: asked };
}

/** Chunks of each document and rows of each chunk, drawn before anything is generated. */
function shapeOf(
  { arrays }: SyntheticStatistics,
  { chunks, meanRows, seed }: SyntheticOptions,
): Pick<Corpus, 'documentChunks' | 'chunkRows'> {
  const random = seededRandom(seed + 2);
  const chunkRows = new Float64Array(chunks + 1);
  const documentChunks = [0];
  for (let chunk = 0; chunk < chunks;) {
    const own = Math.max(1, Math.round(drawn(arrays.documentChunks, random)));
    for (const end = Math.min(chunks, chunk + own); chunk < end; chunk++) {
      const rows = Math.max(1, Math.round(drawn(arrays.chunkRows, random) * meanRows));
      chunkRows[chunk + 1] = chunkRows[chunk]! + rows;
    }
    documentChunks.push(chunk);
  }
  return { chunkRows, documentChunks: Uint32Array.from(documentChunks) };
}

/** A value between the quantiles. */
function drawn(quantiles: Float32Array, random: () => number): number {
  const position = random() * (quantiles.length - 1);
  const below = Math.floor(position);
  return quantiles[below]! + (quantiles[below + 1]! - quantiles[below]!) * (position - below);
}

interface MadeDocument extends TokenMatrices {
  /** Word cluster of every row. */
  readonly words: Uint32Array;
  /** Unit vectors before centring, f32 [rows x dim]. */
  readonly exact: Float32Array;
}

interface ChunkParts {
  /** f32 [rows x dim] and [rows], to be filled. */
  readonly rows: Float32Array;
  readonly words: Uint32Array;
  readonly topic: number;
  readonly subject: readonly number[];
  /** f32 [dim] */
  readonly shift: Float32Array;
  readonly noise: boolean;
}

class Generator {
  readonly #statistics: SyntheticStatistics;
  readonly #seed: number;
  readonly #gaussians: Gaussians;
  readonly #topicBounds: Float32Array;
  /** Running sums of word chances, a topic after the other. */
  readonly #wordBounds: Float32Array;
  /** Parts of the words, f32 [words x wordsPerCluster x dim]. */
  readonly #wordParts: Float32Array;
  readonly #inTopic: Float32Array;

  constructor(statistics: SyntheticStatistics, seed: number) {
    const { dim, topics, words, wordsPerCluster, arrays } = statistics;
    this.#statistics = statistics;
    this.#seed = seed;
    this.#gaussians = new Gaussians(seed);
    this.#topicBounds = runningSums(arrays.topicChances, topics);
    this.#wordBounds = runningSums(
      arrays.topicWords.map((root) => root * root),
      words,
    );
    this.#inTopic = new Float32Array(dim);
    const random = seededRandom(seed + 3);
    this.#wordParts = new Float32Array(words * wordsPerCluster * dim);
    for (let word = 0; word < words * wordsPerCluster; word++) {
      this.#gaussians.draw(this.#wordParts.subarray(word * dim, (word + 1) * dim), random);
    }
  }

  /** Without noise, rows are what their words mean in this chunk. */
  document(document: number, chunkRows: Uint32Array, noise = true): MadeDocument {
    const { dim, arrays, scalars } = this.#statistics;
    const random = seededRandom(Math.imul(document + 1, 0x9e3779b1) ^ this.#seed);
    const rows = chunkRows.reduce((sum, count) => sum + count, 0);
    const made: MadeDocument = {
      vectors: new Int8Array(rows * dim),
      scales: new Uint16Array(rows),
      words: new Uint32Array(rows),
      exact: new Float32Array(rows * dim),
    };
    const topic = placeOf(this.#topicBounds, 0, this.#topicBounds.length, random());
    const { subjectsPerTopic, documentShare, subjectShiftShare } = scalars;
    const place = topic * subjectsPerTopic + Math.floor(random() * subjectsPerTopic);
    const ofSubject = seededRandom(Math.imul(place + 1, 0xc2b2ae35) ^ this.#seed);
    const subject = this.#subject(topic, ofSubject);
    const shared = this.#spread(arrays.chunkSpread, Math.sqrt(documentShare * subjectShiftShare), ofSubject);
    const own = this.#spread(arrays.chunkSpread, Math.sqrt(documentShare * (1 - subjectShiftShare)), random);
    let row = 0;
    for (const count of chunkRows) {
      const shift = this.#spread(arrays.chunkSpread, Math.sqrt(1 - documentShare), random);
      for (let d = 0; d < dim; d++) shift[d]! += shared[d]! + own[d]! + arrays.topicShifts[topic * dim + d]!;
      const exact = made.exact.subarray(row * dim, (row + count) * dim);
      const words = made.words.subarray(row, row + count);
      this.#fill({ rows: exact, words, topic, subject, shift, noise }, random);
      row += count;
    }
    const values = new Float32Array(dim);
    for (row = 0; row < rows; row++) {
      const exact = made.exact.subarray(row * dim, (row + 1) * dim);
      normalise(exact);
      for (let d = 0; d < dim; d++) values[d] = exact[d]! - arrays.centring[d]!;
      made.scales[row] = quantiseRow(values, made.vectors, row * dim);
    }
    return made;
  }

  /** Rows near rows of some chunk of the document, of the words that queries are about. */
  query(number: number, document: number, chunkRows: Uint32Array): Query {
    const { dim, arrays, scalars } = this.#statistics;
    const random = seededRandom(Math.imul(number + 1, 0x85ebca6b) ^ this.#seed);
    const { exact, words } = this.document(document, chunkRows, false);
    const chunk = Math.floor(random() * chunkRows.length);
    const first = chunkRows.subarray(0, chunk).reduce((sum, count) => sum + count, 0);
    const wanted = Math.min(chunkRows[chunk]!, Math.max(1, Math.round(drawn(arrays.queryRows, random))));
    // Weighted draw without replacement: the largest of u^(1/weight) (Efraimidis and Spirakis, 2006).
    const rows = range(first, first + chunkRows[chunk]!)
      .map((row) => ({ row, key: Math.log(random()) / Math.max(1e-3, arrays.queryWords[words[row]!]!) }))
      .toSorted((a, b) => b.key - a.key)
      .slice(0, wanted);
    const shared = this.#spread(arrays.querySpread, scalars.queryNoise, random);
    const vectors = new Float32Array(rows.length * dim);
    for (const [at, { row }] of rows.entries()) {
      const own = this.#spread(arrays.queryRowSpread, scalars.queryNoise, random);
      const vector = vectors.subarray(at * dim, (at + 1) * dim);
      for (let d = 0; d < dim; d++) {
        vector[d] = scalars.querySlope * exact[row * dim + d]! + arrays.queryBias[d]! + shared[d]! + own[d]!;
      }
      normalise(vector);
      const length = arrays.queryLengths[words[row]!]!;
      for (let d = 0; d < dim; d++) vector[d]! *= length;
    }
    return { vectors, rows: rows.length };
  }

  /** The rows of a chunk before they are brought to length 1, and their word clusters. */
  #fill({ rows, words, topic, subject, shift, noise }: ChunkParts, random: () => number): void {
    const { dim, wordsPerCluster, arrays, scalars } = this.#statistics;
    const { wordShare, topicWordShare, chunkWordShare } = scalars;
    const noiseShare = Math.max(0, 1 - wordShare - topicWordShare - chunkWordShare);
    const noiseScale = noise ? Math.sqrt(noiseShare) * scalars.noiseScale : 0;
    const chosen: number[] = [];
    const parts = new Map<number, Float32Array>();
    const own = new Float32Array(dim);
    for (let row = 0; row < words.length; row++) {
      const word = this.#word(topic, subject, chosen, random);
      chosen.push(word);
      const cluster = Math.floor(word / wordsPerCluster);
      words[row] = cluster;
      let part = parts.get(word);
      if (part === undefined) {
        part = this.#wordPart(word, topic, random);
        parts.set(word, part);
      }
      this.#gaussians.draw(own, random);
      const scale = arrays.wordScales[cluster]!;
      for (let d = 0; d < dim; d++) {
        rows[row * dim + d] =
          arrays.wordCentres[cluster * dim + d]! +
          shift[d]! +
          scale * arrays.residualSpread[d]! * (part[d]! + noiseScale * own[d]!);
      }
    }
  }

  /** The sum of the parts that the word has everywhere, in its topic and in this chunk. */
  #wordPart(word: number, topic: number, random: () => number): Float32Array {
    const { dim, words, wordsPerCluster, scalars } = this.#statistics;
    const anywhere = Math.sqrt(scalars.wordShare);
    const topical = Math.sqrt(scalars.topicWordShare);
    const local = Math.sqrt(scalars.chunkWordShare);
    const place = topic * words * wordsPerCluster + word;
    const inTopic = this.#inTopic;
    this.#gaussians.draw(inTopic, seededRandom(Math.imul(place + 1, 0x27d4eb2f) ^ this.#seed));
    const part = new Float32Array(dim);
    this.#gaussians.draw(part, random);
    for (let d = 0; d < dim; d++) {
      part[d] = local * part[d]! + topical * inTopic[d]! + anywhere * this.#wordParts[word * dim + d]!;
    }
    return part;
  }

  /** A word of the chunk once more, one of the subject, or one of the topic. */
  #word(topic: number, subject: readonly number[], chosen: readonly number[], random: () => number): number {
    const { scalars } = this.#statistics;
    if (chosen.length > 0 && random() < scalars.repeatChance) {
      return chosen[Math.floor(random() * chosen.length)]!;
    }
    if (random() < scalars.subjectShare) return subject[Math.floor(random() * subject.length)]!;
    return this.#wordOf(topic, random);
  }

  /** The words of a cluster follow Zipf's law. */
  #wordOf(topic: number, random: () => number): number {
    const { words, wordsPerCluster } = this.#statistics;
    const cluster = placeOf(this.#wordBounds, topic * words, words, random());
    const rank = Math.min(wordsPerCluster - 1, Math.floor((wordsPerCluster + 1) ** random()) - 1);
    return cluster * wordsPerCluster + rank;
  }

  /** The words of a subject. A word may be drawn more than once. */
  #subject(topic: number, random: () => number): readonly number[] {
    const { subjectWords } = this.#statistics.scalars;
    return Array.from({ length: subjectWords }, () => this.#wordOf(topic, random));
  }

  #spread(lower: Float32Array, scale: number, random: () => number): Float32Array {
    const { dim } = this.#statistics;
    const noise = new Float32Array(dim);
    this.#gaussians.draw(noise, random);
    return lowerTimes(lower, noise, dim).map((value) => value * scale);
  }
}

/** Scales a row to length 1. */
function normalise(row: Float32Array): void {
  let square = 0;
  for (let d = 0; d < row.length; d++) square += row[d]! * row[d]!;
  const factor = 1 / Math.sqrt(square || 1);
  for (let d = 0; d < row.length; d++) row[d]! *= factor;
}

/** Sums from the start of each run of `width` values, brought to end at 1. */
function runningSums(chances: Float32Array, width: number): Float32Array {
  const sums = new Float32Array(chances.length);
  for (let from = 0; from < chances.length; from += width) {
    const total = chances.subarray(from, from + width).reduce((sum, chance) => sum + chance, 0);
    let sum = 0;
    for (let at = from; at < from + width; at++) sums[at] = (sum += chances[at]!) / total;
  }
  return sums;
}

/** Place within the run of the first sum above `value`. */
function placeOf(sums: Float32Array, from: number, width: number, value: number): number {
  let low = 0;
  for (let high = width - 1; low < high;) {
    const middle = (low + high) >> 1;
    if (sums[from + middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
