/**
 * Cuts words into the pieces whose scores have the greatest sum (Kudo, "Subword Regularization", arXiv 1804.10959; Viterbi, 1967).
 * A character that is no piece is unknown, with the least score of the vocabulary minus 10. Neighbouring unknown characters are one
 * unknown piece. Scores are added from left to right. Among equal sums the cut whose last piece is longest wins, then the one whose
 * last but one is longest, and so on.
 *
 * Two things make it fast. Where two characters follow one another in no piece, every cut has an end between them. So the parts of
 * a word between such places are cut by themselves. And most parts are pieces: whether such a piece stays whole is remembered.
 */
import type { PieceTrie } from './piece-trie.ts';

export interface UnigramVocabulary {
  readonly pieces: PieceTrie;
  readonly pairs: PiecePairs;
  /** By id. */
  readonly scores: Float32Array | Float64Array;
  /** Whether sums of scores are exact in f64. Otherwise a word is one part, because sums depend on where they begin. */
  readonly isExact: boolean;
  readonly unknownId: number;
  /** The score of an unknown character. */
  readonly unknownScore: number;
}

/** The pieces of a text: their ids, and where each ends. */
export interface CutPieces {
  readonly ids: number[];
  readonly ends: number[];
}

/** The best cuts of a part up to each of its units: the sum of scores, and the last piece. */
interface Paths {
  readonly sums: Float64Array;
  /** Where the last piece begins. */
  readonly starts: Int32Array;
  readonly ids: Int32Array;
}

/** Longer parts are cut in steps, with paths of their own, because other texts have their turns before they end. */
const shortUnits = 1024;
/** Units of a step, which takes at most about 1 ms. */
const stepUnits = 2048;
/** Whether a piece stays whole where it is a part by itself. */
const wholeness = { notKnown: 0, whole: 1, cut: 2 } as const;

/** Pairs of UTF-16 units that follow one another in pieces. A few other pairs seem to be among them, because hashes are kept. */
export class PiecePairs {
  static readonly #bits = 22;
  /** A bit for each hash, in memory that threads may share. */
  readonly words: Int32Array;

  constructor(words: Int32Array = new Int32Array(new SharedArrayBuffer(2 ** PiecePairs.#bits / 8))) {
    this.words = words;
  }

  add(piece: string): void {
    for (let at = 1; at < piece.length; at++) {
      const hash = PiecePairs.#hash(piece.charCodeAt(at - 1), piece.charCodeAt(at));
      this.words[hash >>> 5]! |= 1 << (hash & 31);
    }
  }

  /** Whether a piece may go on from the unit before `at` to the one at `at`. A character of two units is never parted. */
  has(text: string, at: number): boolean {
    const unit = text.charCodeAt(at);
    const hash = PiecePairs.#hash(text.charCodeAt(at - 1), unit);
    return (this.words[hash >>> 5]! & (1 << (hash & 31))) !== 0 || (unit & 0xfc00) === 0xdc00;
  }

  static #hash(first: number, second: number): number {
    return Math.imul((first << 16) ^ second, 0x9e3779b1) >>> (32 - PiecePairs.#bits);
  }
}

export class UnigramCutter {
  readonly #vocabulary: UnigramVocabulary;
  readonly #paths = createPaths(shortUnits);
  /** By id, a `wholeness`. */
  readonly #known: Uint8Array;

  constructor(vocabulary: UnigramVocabulary) {
    this.#vocabulary = vocabulary;
    this.#known = new Uint8Array(vocabulary.scores.length);
  }

  /**
   * Appends the pieces of the word `text[from, to)`. Of a long word it returns the steps that do so, between which the event loop
   * may have a turn.
   */
  cut(text: string, from: number, to: number, into: CutPieces): Generator<void, void, undefined> | undefined {
    if (to - from > shortUnits) return this.#cutLong(text, from, to, into);
    const word = into.ids.length;
    for (let at = from; at < to;) at = this.#cutPart(text, at, to, word, into);
    return undefined;
  }

  *#cutLong(text: string, from: number, to: number, into: CutPieces): Generator<void, void, undefined> {
    const word = into.ids.length;
    let turnAt = from + stepUnits;
    for (let at = from; at < to;) {
      const end = this.#partEnd(text, at + 1, to);
      if (end - at > shortUnits) {
        const before = into.ids.length;
        yield* cutInSteps(this.#vocabulary, text, at, end, into);
        this.#joinUnknown(into, before, word);
        at = end;
      } else {
        at = this.#cutPart(text, at, end, word, into);
      }
      if (at < turnAt) continue;
      turnAt = at + stepUnits;
      yield;
    }
  }

  /** Cuts the part that begins at `at`, and returns its end. `word`: the place in `into` of the word's first piece. */
  #cutPart(text: string, at: number, to: number, word: number, into: CutPieces): number {
    const { pieces, unknownId } = this.#vocabulary;
    const { ids, ends } = into;
    const longest = pieces.longest(text, at, to);
    const { found } = pieces;
    const isPiece = longest > at && this.#isPartEnd(text, longest, to);
    if (isPiece && this.#known[found] === wholeness.whole) {
      ids.push(found);
      ends.push(longest);
      return longest;
    }
    const end = isPiece ? longest : this.#partEnd(text, Math.max(longest, at + 1), to);
    const before = ids.length;
    begin(this.#paths, end - at);
    extend(this.#vocabulary, this.#paths, text, { from: at, to: end, first: at, stop: end });
    append(this.#paths, unknownId, { from: at, to: end }, into);
    if (isPiece) this.#known[found] = ids.length === before + 1 ? wholeness.whole : wholeness.cut;
    this.#joinUnknown(into, before, word);
    return end;
  }

  /** A part, whose first piece is at `before`, may begin with unknown characters that follow others of its word. */
  #joinUnknown({ ids, ends }: CutPieces, before: number, word: number): void {
    const { unknownId } = this.#vocabulary;
    if (before === word || ids[before] !== unknownId || ids[before - 1] !== unknownId) return;
    ids.splice(before - 1, 1);
    ends.splice(before - 1, 1);
  }

  #isPartEnd(text: string, at: number, to: number): boolean {
    const { pairs, isExact } = this.#vocabulary;
    return at === to || (isExact && !pairs.has(text, at));
  }

  /** The first end of a part at or behind `at`. */
  #partEnd(text: string, at: number, to: number): number {
    const { pairs, isExact } = this.#vocabulary;
    if (!isExact) return Math.max(at, to);
    let end = at;
    while (end < to && pairs.has(text, end)) end++;
    return end;
  }
}

function* cutInSteps(
  vocabulary: UnigramVocabulary,
  text: string,
  from: number,
  to: number,
  into: CutPieces,
): Generator<void, void, undefined> {
  const paths = createPaths(to - from);
  begin(paths, to - from);
  for (let first = from; first < to; first += stepUnits, yield) {
    extend(vocabulary, paths, text, { from, to, first, stop: Math.min(to, first + stepUnits) });
  }
  append(paths, vocabulary.unknownId, { from, to }, into);
}

function createPaths(units: number): Paths {
  return {
    sums: new Float64Array(units + 1),
    starts: new Int32Array(units + 1),
    ids: new Int32Array(units + 1),
  };
}

function begin({ sums }: Paths, units: number): void {
  sums[0] = 0;
  for (let unit = 1; unit <= units; unit++) sums[unit] = -Infinity;
}

/** Extends the paths of the part `text[from, to)` by the pieces that begin in `[first, stop)`. */
function extend(
  { pieces, scores, unknownId, unknownScore }: UnigramVocabulary,
  { sums, starts, ids }: Paths,
  text: string,
  { from, to, first, stop }: { from: number; to: number; first: number; stop: number },
): void {
  for (let start = first; start < stop; start++) {
    const sum = sums[start - from]!;
    // No piece ends within a character.
    if (sum === -Infinity) continue;
    const character = start + ((text.charCodeAt(start) & 0xfc00) === 0xd800 ? 2 : 1);
    const count = pieces.all(text, start, to);
    let isKnown = false;
    for (let piece = 0; piece < count; piece++) {
      const end = pieces.ends[piece]!;
      const id = pieces.ids[piece]!;
      if (end === character) isKnown = true;
      const candidate = sum + scores[id]!;
      if (candidate <= sums[end - from]!) continue;
      sums[end - from] = candidate;
      starts[end - from] = start;
      ids[end - from] = id;
    }
    const end = character - from;
    if (isKnown || sum + unknownScore <= sums[end]!) continue;
    sums[end] = sum + unknownScore;
    starts[end] = start;
    ids[end] = unknownId;
  }
}

/** Appends the pieces of the best cut of the part from `from` to `to`. */
function append(
  { starts, ids: pieces }: Paths,
  unknownId: number,
  { from, to }: { from: number; to: number },
  { ids, ends }: CutPieces,
): void {
  const before = ids.length;
  for (let end = to; end > from; end = starts[end - from]!) {
    const id = pieces[end - from]!;
    if (id === unknownId && ids.length > before && ids.at(-1) === unknownId) continue;
    ids.push(id);
    ends.push(end);
  }
  reverse(ids, before);
  reverse(ends, before);
}

/** Reverses the numbers from `first` on. */
function reverse(numbers: number[], first: number): void {
  for (let low = first, high = numbers.length - 1; low < high; low++, high--) {
    const kept = numbers[low]!;
    numbers[low] = numbers[high]!;
    numbers[high] = kept;
  }
}
