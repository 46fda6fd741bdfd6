/** Counts the tokens of stored documents, and how many of them stand for text that the model does not know. */
import type { UpsertResult } from '../../../clients/typescript/src/types.ts';

export interface TokenTally {
  readonly inputTokens: number;
  readonly unknownTokens: number;
  /** Documents that have unknown tokens. */
  readonly documents: number;
  /** The documents with the largest shares, largest first. */
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

/** Tokens of one answer. An earlier service does not count unknown ones. */
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

/** Share of unknown tokens; 0 without tokens. */
export function unknownShare({ inputTokens, unknownTokens }: TokenTally): number {
  return inputTokens === 0 ? 0 : unknownTokens / inputTokens;
}
