/** The components of a score, which searching and scoring share. */
import type { ResultComponents } from '../contract.ts';

export interface ScoredRows {
  readonly score: number;
  /** The place of the result in `similarities`. */
  readonly position: number;
  readonly queryRows: number;
  /** f32 [results x query rows], offsets included. */
  readonly similarities?: Float32Array;
  readonly documentTokens?: Uint32Array;
  readonly candidateScores?: Float32Array;
  readonly candidateRanks?: Uint32Array;
}

/** The components of one score, whose similarities add up to it; `undefined` unless they were asked for. */
export function componentsOf(scored: ScoredRows): ResultComponents | undefined {
  const { position, queryRows, similarities, documentTokens } = scored;
  if (similarities === undefined || documentTokens === undefined) return undefined;
  const candidateScore = scored.candidateScores?.[position];
  const candidateRank = scored.candidateRanks?.[position];
  const [first, end] = [position * queryRows, (position + 1) * queryRows];
  return {
    maxsim: scored.score,
    similarities: similarities.subarray(first, end),
    documentTokens: documentTokens.subarray(first, end),
    ...(candidateScore === undefined ? {} : { candidateScore }),
    ...(candidateRank === undefined ? {} : { candidateRank }),
  };
}
