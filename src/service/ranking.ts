/** What searching and scoring share: the order of results and the parts of a score. */
import type { ResultComponents, ResultItem } from './contract.ts';

type Ranked = Pick<ResultItem, 'score' | 'docId' | 'chunkIndex'>;

/** Best first; ties by doc_id in code point order, then by chunk_index. */
export function byRank(a: Ranked, b: Ranked): number {
  return b.score - a.score || byCodePoints(a.docId, b.docId) || a.chunkIndex - b.chunkIndex;
}

/** UTF-8 bytes sort as code points do; UTF-16 units, which `<` compares, do not. */
function byCodePoints(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export interface ScoredRows {
  readonly score: number;
  /** Of the result among those that `similarities` holds. */
  readonly position: number;
  readonly queryRows: number;
  /** f32 [results x query rows], offsets included. */
  readonly similarities?: Float32Array;
  readonly documentTokens?: Uint32Array;
  readonly candidateScores?: Float32Array;
  readonly candidateRanks?: Uint32Array;
}

/** The parts of one score; absent unless they were asked for. The similarities add up to it. */
export function componentsOf(scored: ScoredRows): ResultComponents | undefined {
  const { position, queryRows, similarities, documentTokens } = scored;
  if (similarities === undefined || documentTokens === undefined) return undefined;
  const candidateScore = scored.candidateScores?.[position];
  const candidateRank = scored.candidateRanks?.[position];
  return {
    maxsim: scored.score,
    perQueryToken: Array.from({ length: queryRows }, (_row, tokenIndex) => ({
      tokenIndex,
      documentTokenIndex: documentTokens[position * queryRows + tokenIndex] ?? 0,
      similarity: similarities[position * queryRows + tokenIndex] ?? 0,
    })),
    ...(candidateScore === undefined ? {} : { candidateScore }),
    ...(candidateRank === undefined ? {} : { candidateRank }),
  };
}
