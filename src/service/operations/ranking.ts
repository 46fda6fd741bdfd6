/** The components of a score, which searching and scoring share. */
import { unpackRowPlaces } from '../../encoder/protocol/row-places.ts';
import type { ResultComponents, TextRange } from '../contract.ts';

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
  readonly textRange: TextRange | undefined;
  /** Packed places of the rows of the chunk. Absent = unknown. */
  readonly rowPlaces: Uint8Array | undefined;
}

/** The components of one score, whose similarities add up to it; `undefined` unless they were asked for. */
export function componentsOf(scored: ScoredRows): ResultComponents | undefined {
  const { position, queryRows, similarities, documentTokens } = scored;
  if (similarities === undefined || documentTokens === undefined) return undefined;
  const candidateScore = scored.candidateScores?.[position];
  const candidateRank = scored.candidateRanks?.[position];
  const [first, end] = [position * queryRows, (position + 1) * queryRows];
  const { textRange, rowPlaces } = scored;
  const places = textRange && rowPlaces ? unpackRowPlaces(textRange.start, rowPlaces) : [];
  const matched = documentTokens.subarray(first, end);
  return {
    maxsim: scored.score,
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
