/** The components of a score and its share of the best possible one, which searching and scoring share. */
import type { EncodedQuery } from '../../encoder/protocol/contract.ts';
import { unpackRowPlaces } from '../../encoder/protocol/row-places.ts';
import type { ResultComponents, TextRange } from '../contract.ts';

export interface ScoredRows {
  readonly maxsim: number;
  /** The place of the result in `similarities`. */
  readonly position: number;
  readonly queryRows: number;
  /** f32 [results x query rows], offsets included. */
  readonly similarities?: Float32Array;
  readonly documentTokens?: Uint32Array;
  readonly candidateScores?: Float32Array;
  readonly candidateRanks?: Uint32Array;
  readonly textRange: TextRange | undefined;
  /** Packed places of the rows of the chunk. Absent = unknown. */
  readonly rowPlaces: Uint8Array | undefined;
}

/** The components of one score, whose similarities add up to it; `undefined` unless they were asked for. */
export function componentsOf(scored: ScoredRows): ResultComponents | undefined {
  const { position, queryRows, similarities, documentTokens } = scored;
  if (similarities === undefined || documentTokens === undefined) return undefined;
  // A chunk that is here for a word of the query alone was no candidate.
  const isCandidate = !Number.isNaN(scored.candidateScores?.[position]);
  const candidateScore = isCandidate ? scored.candidateScores?.[position] : undefined;
  const candidateRank = isCandidate ? scored.candidateRanks?.[position] : undefined;
  const [first, end] = [position * queryRows, (position + 1) * queryRows];
  const { textRange, rowPlaces } = scored;
  const places = textRange && rowPlaces ? unpackRowPlaces(textRange.start, rowPlaces) : [];
  const matched = documentTokens.subarray(first, end);
  return {
    maxsim: scored.maxsim,
    similarities: similarities.subarray(first, end),
    documentTokens: matched,
    places: Array.from(matched, (row) => places[row]),
    ...(candidateScore === undefined ? {} : { candidateScore }),
    ...(candidateRank === undefined ? {} : { candidateRank }),
  };
}

/** The range of a chunk in columns of start, end and perhaps more; `undefined` if it is unknown. */
export function textRangeAt(
  columns: Uint32Array | undefined,
  { chunk, fields }: { readonly chunk: number; readonly fields: number },
): TextRange | undefined {
  const [start = 0, end = 0] = columns?.subarray(chunk * fields) ?? [];
  return end === 0 ? undefined : { start, end };
}

/** The sum of the lengths of the query's rows: the MaxSim of a chunk that has each of them. Rows of MASK tokens count too. */
export function weightOf(query: Pick<EncodedQuery, 'vectors' | 'rows'>): number {
  return rowLengths(query).reduce((sum, length) => sum + length, 0);
}

/** f64 [rows] */
export function rowLengths({ vectors, rows }: Pick<EncodedQuery, 'vectors' | 'rows'>): Float64Array {
  const dim = vectors.length / rows;
  return Float64Array.from({ length: rows }, (_, row) => {
    let square = 0;
    for (let at = row * dim; at < (row + 1) * dim; at++) square += vectors[at]! ** 2;
    return Math.sqrt(square);
  });
}

/** More digits than this say nothing about rows of few bits. */
const normalizedSteps = 1e6;

/**
 * A score as a share of the weight of its query, from 0 to 1. Stored rows have a length of about 1, so the rounding of rows may
 * bring a sum above the weight, and so may bonuses.
 */
export function normalizedScore(score: number, weight: number): number {
  const share = weight === 0 ? 0 : Math.min(1, Math.max(0, score / weight));
  return Math.round(share * normalizedSteps) / normalizedSteps;
}
