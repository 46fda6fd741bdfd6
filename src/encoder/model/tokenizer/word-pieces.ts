/**
 * WordPiece (Wu et al., arXiv 1609.08144). A word is cut into the longest piece of the vocabulary that it begins with, then the
 * longest continuation, and so on. A word that cannot be cut like that is unknown as a whole.
 */
import { PieceTrie } from './piece-trie.ts';

export interface WordPieceOptions {
  /** Piece -> id. Continuations have their prefix. */
  readonly vocabulary: ReadonlyMap<string, number>;
  readonly continuationPrefix: string;
  readonly unknownId: number;
  /** A longer word (in code points) is unknown. */
  readonly charactersMax: number;
}

/** Appends the ids of the pieces of the word `text[from, to)`. */
export type WordPieces = (text: string, from: number, to: number, ids: number[]) => void;

export function createWordPieces(options: WordPieceOptions): WordPieces {
  const { vocabulary, continuationPrefix: prefix, unknownId, charactersMax } = options;
  // The tries work on UTF-16 units. A well-formed vocabulary has no piece that is half a character.
  const first = new PieceTrie(vocabulary);
  const further = new PieceTrie(
    [...vocabulary]
      .filter(([piece]) => piece.startsWith(prefix))
      .map(([piece, id]) => [piece.slice(prefix.length), id]),
  );
  /** Returns false when the word cannot be cut. */
  const cut: (...word: Parameters<WordPieces>) => boolean = (text, from, to, ids) => {
    for (let at = from, pieces = first; at < to; pieces = further) {
      const end = pieces.longest(text, at, to);
      if (end === at) return false;
      ids.push(pieces.found);
      at = end;
    }
    return true;
  };
  return (text, from, to, ids) => {
    const before = ids.length;
    if (!isLonger(text, from, to, charactersMax) && cut(text, from, to, ids)) return;
    ids.length = before;
    ids.push(unknownId);
  };
}

function isLonger(text: string, from: number, to: number, characters: number): boolean {
  return to - from > characters && Array.from(text.slice(from, to)).length > characters;
}
