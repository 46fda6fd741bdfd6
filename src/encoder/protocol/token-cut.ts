/** Says how long texts of a list are cut, so that the list has a bounded number of tokens. The client and the encoder both use it. */

export interface TokenCut {
  /** Tokens of one text that are encoded at most, without special tokens. */
  readonly documentTokensMax: number;
  /** Tokens of all texts together. At least the number of texts. */
  readonly tokensMax: number;
}

/**
 * The number of tokens at which texts are cut: `documentTokensMax`, or less if the list would not fit otherwise. All long texts
 * are cut at one number, and short texts stay whole. So a text loses tokens only to texts that are shorter than the cut.
 */
export function cutAt(wholeTokens: Iterable<number>, { documentTokensMax, tokensMax }: TokenCut): number {
  const ascending = Uint32Array.from(wholeTokens).toSorted();
  let left = tokensMax;
  for (const [place, tokens] of ascending.entries()) {
    const texts = ascending.length - place;
    if (tokens * texts > left) return Math.min(documentTokensMax, Math.floor(left / texts));
    left -= tokens;
  }
  return documentTokensMax;
}

/** The tokens that the texts of a list keep. */
export function cutTokens(wholeTokens: readonly number[], cut: TokenCut): readonly number[] {
  const most = cutAt(wholeTokens, cut);
  return wholeTokens.map((tokens) => Math.min(tokens, most));
}
