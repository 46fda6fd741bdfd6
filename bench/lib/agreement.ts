import { mean, minimum } from './statistics.ts';

/** How far the vectors of a side agree with ours: cosines of token vectors of the same tokens. */
export interface Agreement {
  readonly texts: number;
  readonly token_vectors: number;
  readonly mean_cosine: number;
  readonly minimum_cosine: number;
  /** Texts for which the other side has another number of tokens; they are left out. */
  readonly texts_with_other_tokens: number;
}

export function agreementOf(
  ours: readonly Float32Array[],
  theirs: readonly Float32Array[],
  dim: number,
): Agreement {
  const cosines: number[] = [];
  let others = 0;
  for (const [text, mine] of ours.entries()) {
    const other = theirs[text];
    if (other?.length !== mine.length) {
      others++;
      continue;
    }
    for (let from = 0; from < mine.length; from += dim) {
      const value = cosine(mine.subarray(from, from + dim), other.subarray(from, from + dim));
      // A query token of weight zero has no direction.
      if (Number.isFinite(value)) cosines.push(value);
    }
  }
  return {
    texts: ours.length,
    token_vectors: cosines.length,
    mean_cosine: mean(cosines),
    minimum_cosine: minimum(cosines),
    texts_with_other_tokens: others,
  };
}

function cosine(a: Float32Array, b: Float32Array): number {
  let dot = 0;
  let squareA = 0;
  let squareB = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    squareA += a[i]! ** 2;
    squareB += b[i]! ** 2;
  }
  return dot / Math.sqrt(squareA * squareB);
}

/** The value of non-negative finite IEEE half bits, as scales are. */
export function halfValue(bits: number): number {
  const exponent = bits >> 10;
  const fraction = bits & 0x3ff;
  return exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
}
