/** Tokens and vectors of a text without a model: words are tokens, and the vector of a word depends on the word alone. */
import { createHash } from 'node:crypto';

export const wordDim = 16;
/** Half-precision bits of 1/128, the scale of every vector. */
export const wordScaleBits = 0x2000;

export function wordsOf(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** In code points. */
export function placesOfWords(text: string): { readonly starts: Uint32Array; readonly ends: Uint32Array } {
  const starts: number[] = [];
  const ends: number[] = [];
  let unit = 0;
  let point = 0;
  const pointAt = (wanted: number): number => {
    for (; unit < wanted; point += 1) unit += text.codePointAt(unit)! > 0xffff ? 2 : 1;
    return point;
  };
  for (const { index, 0: word } of text.matchAll(/\S+/g)) {
    starts.push(pointAt(index));
    ends.push(pointAt(index + word.length));
  }
  return { starts: Uint32Array.from(starts), ends: Uint32Array.from(ends) };
}

/** The vectors of words as a document has them: int8 [words x dim]. */
export function documentVectors(words: readonly string[]): Int8Array {
  return Int8Array.from(words.flatMap((word) => [...vectorOf(word)]));
}

/** The vectors of words as a query has them: f32 [words x dim]. */
export function queryVectors(words: readonly string[]): Float32Array {
  return Float32Array.from(words.flatMap((word) => [...vectorOf(word)].map((value) => value / 32)));
}

function vectorOf(word: string): Int8Array {
  const digest = createHash('sha256').update(word).digest();
  return Int8Array.from(digest.subarray(0, wordDim), (byte) => Math.round((byte - 128) / 4));
}
