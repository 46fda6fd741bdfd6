/**
 * Where in a text its tokens lie. A BERT normaliser works character by character, but for the order of some marks, so that each
 * unit of the normalised text comes from one character; a word's pieces follow one another. Whoever asks compares the ids with
 * those of the tokenizer, and takes places with other ids for unknown.
 */
import { forEachBertWord } from './bert-text.ts';
import type { WordPieces } from './word-pieces.ts';

/** Places in UTF-16 units of the text: token i is of `text.slice(starts[i], ends[i])`. */
export interface TokenPlaces {
  readonly ids: Int32Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

export interface PieceLengths {
  readonly first: ReadonlyMap<number, number>;
  readonly further: ReadonlyMap<number, number>;
}

/** Lengths of pieces at the beginning of a word and further on, by id. Made at the first use: few tokenizers are asked. */
export function createPieceLengths(
  vocabulary: ReadonlyMap<string, number>,
  prefix: string,
): () => PieceLengths {
  let lengths: PieceLengths | undefined;
  return () => {
    lengths ??= {
      first: new Map([...vocabulary].map(([piece, id]) => [id, piece.length])),
      further: new Map([...vocabulary].map(([piece, id]) => [id, piece.length - prefix.length])),
    };
    return lengths;
  };
}

export function locateBertTokens(
  text: string,
  options: {
    readonly normalize: (text: string) => string;
    readonly appendPieces: WordPieces;
    readonly pieces: () => PieceLengths;
    readonly unknownId: number;
  },
): TokenPlaces {
  const { normal, characterStarts, characterEnds } = normalizeByCharacter(text, options.normalize);
  const { first, further } = options.pieces();
  const ids: number[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  forEachBertWord(normal, { from: 0, enough: normal.length }, (from, to) => {
    const word = ids.length;
    options.appendPieces(normal, from, to, ids);
    for (let piece = word, at = from; piece < ids.length; piece++) {
      const id = ids[piece]!;
      // A word of unknown pieces is one token.
      const isWhole = id === options.unknownId && ids.length === word + 1;
      const end = isWhole ? to : Math.min(to, at + ((piece === word ? first : further).get(id) ?? 0));
      starts.push(characterStarts[at] ?? text.length);
      ends.push(characterEnds[end - 1] ?? text.length);
      at = end;
    }
  });
  return { ids: Int32Array.from(ids), starts: Uint32Array.from(starts), ends: Uint32Array.from(ends) };
}

/** The normalised text, and for each of its units where the character begins and ends that it comes from. */
function normalizeByCharacter(text: string, normalize: (text: string) => string) {
  const known = new Map<string, string>();
  const characterStarts: number[] = [];
  const characterEnds: number[] = [];
  let normal = '';
  let at = 0;
  for (const character of text) {
    let normalized = known.get(character);
    if (normalized === undefined) known.set(character, (normalized = normalize(character)));
    normal += normalized;
    for (let unit = 0; unit < normalized.length; unit++) {
      characterStarts.push(at);
      characterEnds.push(at + character.length);
    }
    at += character.length;
  }
  return { normal, characterStarts, characterEnds };
}
