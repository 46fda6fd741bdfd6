/**
 * Statistics of real embeddings, from which the generator draws. Everything is in the basis of the principal axes of the token
 * residuals. That changes no dot product, and makes their covariance diagonal.
 *
 * A token vector is a sum, scaled to length 1 before centring. Its terms are the centre of its word cluster, the shift of its chunk
 * (of its topic, of its document and its own), the parts of its word (everywhere, in this topic and in this chunk), and noise. The
 * next word of a chunk repeats one that it has, or is one of the subject of its document, or any one of its topic. A subject
 * is a few words of a topic.
 *
 * File: one line of JSON (scalars and array lengths), then the arrays as f16 little-endian in the order of the line. The program
 * that measured them, `fit-statistics.ts`, is in the history of this folder.
 */
import { readFileSync } from 'node:fs';

export interface SyntheticStatistics {
  /** The texts that were measured, and how many chunks they had. */
  readonly source: string;
  readonly dim: number;
  readonly topics: number;
  readonly words: number;
  /** Words of a cluster that the generator tells apart. */
  readonly wordsPerCluster: number;
  readonly scalars: {
    /** Share of the variance of chunk shifts around their topic that the chunks of a document have in common. */
    readonly documentShare: number;
    /** Chance that a token repeats a word its chunk has already. */
    readonly repeatChance: number;
    /** Shares of the variance of token residuals: of the word, of it within a topic, within a chunk; noise is the rest. */
    readonly wordShare: number;
    readonly topicWordShare: number;
    readonly chunkWordShare: number;
    /** A query row is so much of a token vector without its noise, plus queryBias, plus noise of query and row. */
    readonly querySlope: number;
    /** Subjects of a topic and words of a subject; share of what a document's chunks have in common that its subject has. */
    readonly subjectsPerTopic: number;
    readonly subjectWords: number;
    readonly subjectShiftShare: number;
    /** Chance that a word that is not repeated is of the subject; scales of the noise of rows and of query rows. */
    readonly subjectShare: number;
    readonly noiseScale: number;
    readonly queryNoise: number;
  };
  readonly arrays: {
    /** [dim] */
    readonly centring: Float32Array;
    /** [topics]: chances; [topics x dim]: mean shifts of their chunks. */
    readonly topicChances: Float32Array;
    readonly topicShifts: Float32Array;
    /** [dim x dim], lower triangle: covariance of chunk shifts around those of their topic. */
    readonly chunkSpread: Float32Array;
    /** [words x dim]: mean of a word cluster. */
    readonly wordCentres: Float32Array;
    /** [words]: standard deviation of residuals by that of all. */
    readonly wordScales: Float32Array;
    /** [topics x words]: square roots of the chances of word clusters. */
    readonly topicWords: Float32Array;
    /** [dim]: standard deviations of token residuals. */
    readonly residualSpread: Float32Array;
    /** Quantiles of the rows of a chunk by their mean, of the chunks of a document, of the rows of a query. */
    readonly chunkRows: Float32Array;
    readonly documentChunks: Float32Array;
    readonly queryRows: Float32Array;
    /** [words]: how often queries match a word cluster by how often it occurs, and the mean length of such query rows. */
    readonly queryWords: Float32Array;
    readonly queryLengths: Float32Array;
    /** [dim]; [dim x dim] lower triangles of what the rows of a query have in common and of what is a row's own. */
    readonly queryBias: Float32Array;
    readonly querySpread: Float32Array;
    readonly queryRowSpread: Float32Array;
  };
}

export function readStatistics(file: string): SyntheticStatistics {
  const bytes = readFileSync(file);
  const end = bytes.indexOf(10);
  const { lengths, ...header } = JSON.parse(bytes.toString('utf8', 0, end)) as Omit<
    SyntheticStatistics,
    'arrays'
  > & { readonly lengths: Readonly<Record<string, number>> };
  let at = end + 1;
  const arrays: Record<string, Float32Array> = {};
  for (const [name, length] of Object.entries(lengths)) {
    arrays[name] = Float32Array.from(
      new Float16Array(new Uint8Array(bytes.subarray(at, at + length * 2)).buffer),
    );
    at += length * 2;
  }
  return { ...header, arrays: arrays as unknown as SyntheticStatistics['arrays'] };
}
