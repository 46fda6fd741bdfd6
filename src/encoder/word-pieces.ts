/**
 * WordPiece (Wu et al., arXiv 1609.08144): the longest piece of the vocabulary that a word begins with, then the longest
 * continuation, and so on; a word that cannot be cut so is unknown as a whole.
 */
export interface WordPieceOptions {
  /** Ids of all pieces, continuations with their prefix. */
  readonly vocabulary: ReadonlyMap<string, number>;
  readonly continuationPrefix: string;
  readonly unknownId: number;
  /** A longer word (in code points) is unknown. */
  readonly charactersMax: number;
}

/** From words to the ids of their pieces. */
export function createWordPieces(options: WordPieceOptions): (words: readonly string[]) => number[] {
  const { vocabulary, continuationPrefix: prefix, unknownId, charactersMax } = options;
  const first = new PieceTable();
  const further = new PieceTable();
  for (const [piece, id] of vocabulary) {
    first.add(piece, id);
    if (piece.startsWith(prefix)) further.add(piece.slice(prefix.length), id);
  }
  /** Appends the pieces of a word; false when it has none. */
  const cut = (word: string, ids: number[]): boolean => {
    let from = 0;
    while (from < word.length) {
      const found = (from === 0 ? first : further).longest(word, from);
      if (found === undefined) return false;
      ids.push(found.id);
      from = found.end;
    }
    return true;
  };
  return (words) => {
    const ids: number[] = [];
    for (const word of words) {
      const before = ids.length;
      if (!longerThan(word, charactersMax) && cut(word, ids)) continue;
      ids.length = before;
      ids.push(unknownId);
    }
    return ids;
  };
}

/** Ids of pieces by the text they stand for. */
class PieceTable {
  readonly #ids = new Map<string, number>();
  #longest = 0;

  add(text: string, id: number): void {
    this.#ids.set(text, id);
    this.#longest = Math.max(this.#longest, text.length);
  }

  longest(word: string, from: number): { readonly id: number; readonly end: number } | undefined {
    // By UTF-16 units: half a character is no piece of a well-formed vocabulary.
    for (let end = Math.min(word.length, from + this.#longest); end > from; end--) {
      const id = this.#ids.get(word.slice(from, end));
      if (id !== undefined) return { id, end };
    }
    return undefined;
  }
}

function longerThan(word: string, characters: number): boolean {
  return word.length > characters && Array.from(word).length > characters;
}
