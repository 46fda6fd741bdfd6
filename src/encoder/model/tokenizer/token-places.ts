/**
 * Finds where the tokens of a text lie in it. A BERT normaliser works character by character, except for the order of some marks.
 * So each unit of the normalised text comes from one character, and the pieces of a word follow one another. The caller must
 * compare the ids with those of the tokenizer. If they differ, the places are unknown.
 */
import { forEachBertWord } from './bert-text.ts';
import type { WordPieces } from './word-pieces.ts';

/** Places in UTF-16 units: token i comes from `text.slice(starts[i], ends[i])`. */
export interface TokenPlaces {
  readonly ids: Int32Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

export interface PieceLengths {
  readonly first: ReadonlyMap<number, number>;
  readonly further: ReadonlyMap<number, number>;
}

/** Lengths of pieces, by id, at the beginning of a word and further on. They are computed at the first use, because few tokenizers need them. */
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

/** Places that are still being found. */
export interface FoundPlaces {
  readonly ids: number[];
  readonly starts: number[];
  readonly ends: number[];
}

/** Characters of a step, which takes at most about 1 ms. */
const stepCharacters = 1024;

/** Finds the places of a text in steps. It yields where the event loop may have a turn. */
export function* locateBertTokens(
  text: string,
  options: {
    readonly normalize: (text: string) => string;
    readonly appendPieces: WordPieces;
    readonly pieces: () => PieceLengths;
    readonly unknownId: number;
  },
  { ids, starts, ends }: FoundPlaces,
): Generator<void, void, undefined> {
  const characters: Characters = { normal: [], starts: [], ends: [] };
  yield* normalizeByCharacter(text, options.normalize, characters);
  const { starts: characterStarts, ends: characterEnds } = characters;
  const normal = characters.normal.join('');
  const { first, further } = options.pieces();
  const take = (from: number, to: number): void => {
    const word = ids.length;
    options.appendPieces(normal, from, to, ids);
    for (let piece = word, at = from; piece < ids.length; piece++) {
      const id = ids[piece]!;
      // A word that has no pieces is one unknown token.
      const isWhole = id === options.unknownId && ids.length === word + 1;
      const end = isWhole ? to : Math.min(to, at + ((piece === word ? first : further).get(id) ?? 0));
      starts.push(characterStarts[at] ?? text.length);
      ends.push(characterEnds[end - 1] ?? text.length);
      at = end;
    }
  };
  for (let from = 0; from < normal.length; yield) {
    from = forEachBertWord(normal, { from, enough: from + stepCharacters }, take);
  }
}

/** A normalised text. For each of its units, the start and end of the character that it comes from. */
interface Characters {
  readonly normal: string[];
  readonly starts: number[];
  readonly ends: number[];
}

function* normalizeByCharacter(
  text: string,
  normalize: (text: string) => string,
  into: Characters,
): Generator<void, void, undefined> {
  const known = new Map<number, string>();
  let stepAt = stepCharacters;
  for (let at = 0, next = 0; at < text.length; at = next) {
    const code = text.codePointAt(at)!;
    next = at + (code > 0xffff ? 2 : 1);
    let normalized = known.get(code);
    if (normalized === undefined) known.set(code, (normalized = normalize(text.slice(at, next))));
    into.normal.push(normalized);
    for (let unit = 0; unit < normalized.length; unit++) {
      into.starts.push(at);
      into.ends.push(next);
    }
    if (next < stepAt) continue;
    stepAt = next + stepCharacters;
    yield;
  }
}
