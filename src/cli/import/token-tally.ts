/** Tokens of documents that were stored, and those of them that stand for text that the model does not know. */
import type { UpsertResult } from '../../../clients/typescript/src/types.ts';

export interface TokenTally {
  readonly inputTokens: number;
  readonly unknownTokens: number;
  /** That have unknown tokens. */
  readonly documents: number;
  /** Those with the largest shares, largest first. */
  readonly worst: readonly { readonly docId: string; readonly share: number }[];
}

export const noTokens: TokenTally = { inputTokens: 0, unknownTokens: 0, documents: 0, worst: [] };

const worstKeptMax = 5;

export function addTokens(one: TokenTally, other: TokenTally): TokenTally {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    unknownTokens: one.unknownTokens + other.unknownTokens,
    documents: one.documents + other.documents,
    worst: [...one.worst, ...other.worst].toSorted((a, b) => b.share - a.share).slice(0, worstKeptMax),
  };
}

/** Tokens of the documents of one answer; a service of an earlier version does not count the unknown ones. */
export function tokensOf(answer: UpsertResult | undefined): TokenTally {
  const unknown = answer?.unknown_tokens ?? [];
  return unknown
    .map((item) => ({
      inputTokens: 0,
      unknownTokens: item.unknown_tokens,
      documents: 1,
      worst: [{ docId: item.doc_id, share: item.unknown_tokens / item.input_tokens }],
    }))
    .reduce(addTokens, { ...noTokens, inputTokens: answer?.usage.input_tokens ?? 0 });
}

/** Unknown tokens among all; 0 where there are none. */
export function unknownShare({ inputTokens, unknownTokens }: TokenTally): number {
  return inputTokens === 0 ? 0 : unknownTokens / inputTokens;
}
