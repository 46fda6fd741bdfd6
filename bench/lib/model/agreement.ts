import { mean, minimum } from '../statistics.ts';
import { dot } from '../vectors.ts';

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
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
