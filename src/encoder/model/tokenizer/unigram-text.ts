/**
 * The normaliser of Unigram tokenizers (SentencePiece; XLM-R and its like). Letters are composed with their marks
 * (`composition.ts`). Then the checkpoint's own table replaces characters, the longest text that it knows first. Then the text is
 * split at white space. Each word begins with the mark `▁`, which is a space here: so most texts are copied as they are.
 *
 * Hugging Face's `tokenizers` gives the same for texts in NFC, but where the table has a character with a mark behind it: there it
 * loses the mark.
 */
import { compose, composes, isPassed, type ComposedPart } from './composition.ts';
import { PieceTrie } from './piece-trie.ts';

export interface UnigramTextOptions {
  /** Text -> its replacement. */
  readonly entries: ReadonlyMap<string, string>;
  /** Every character of white space separates words, not the space alone. */
  readonly splitsAtWhiteSpace: boolean;
  /** Several spaces are as one. Otherwise each begins a word. */
  readonly joinsSpaces: boolean;
}

export type WhiteSpaceOptions = Omit<UnigramTextOptions, 'entries'>;

/** Normalises a text in steps. It yields where the event loop may have a turn. */
export type UnigramNormalizer = (text: string, into: NormalText) => Generator<void, void, undefined>;

/** The mark of a word in a vocabulary, and in a normalised text. */
export const wordMark = '▁';
export const wordStart = ' ';
const space = 0x20;
/** The end of a run whose units come from one unit each. */
const unitByUnit = -1;
const marks = /([ ▁])/;

/** The treatment of a character. 0 = not computed yet. */
const kinds = { kept: 1, space: 2, replaced: 3, joins: 4, passed: 5 } as const;
/** More characters are not looked at together. No language has longer runs of marks. */
const charactersMax = 32;
/** Characters of a step, which takes at most about 1 ms. */
const stepCharacters = 4096;
/** A character that may be replaced or composed takes as long as so many others. */
const replacedCost = 16;

/** The end of the normalised text: behind a character, a space, or a mark that is written out, or at the beginning. */
type End = 'character' | 'space' | 'mark' | 'beginning';

/** A normalised text, and where its units come from. */
export class NormalText {
  /** Normalised. Each word begins with `wordStart`. */
  text = wordStart;
  readonly #options: WhiteSpaceOptions;
  readonly #parts: string[] = [wordStart];
  /** The sum of the parts. */
  #length = wordStart.length;
  #end: End = 'beginning';
  /** For each run its place in `text`, and its source. Where `#ends` is `unitByUnit`, each unit comes from one unit. */
  readonly #places: number[] = [0];
  readonly #starts: number[] = [0];
  readonly #ends: number[] = [0];

  constructor(options: WhiteSpaceOptions) {
    this.#options = options;
  }

  /** Whether another space would change nothing. */
  get isAfterSpace(): boolean {
    return this.#end === 'beginning' || (this.#end === 'space' && this.#options.joinsSpaces);
  }

  /** Adds `source[from, to)`, in which a space is the beginning of a word. */
  copy(source: string, from: number, to: number): void {
    if (from === to) return;
    this.#push(source.slice(from, to), from, unitByUnit);
    this.#end = source.charCodeAt(to - 1) === space ? 'space' : 'character';
  }

  /** Adds a replacement of `source[start, end)`. */
  replace(replacement: string, start: number, end: number): void {
    if (replacement.length > 1 && marks.test(replacement)) {
      for (const part of replacement.split(marks)) this.replace(part, start, end);
    } else if (replacement === wordStart) {
      if (!this.isAfterSpace) this.#push(wordStart, start, end);
      this.#end = 'space';
    } else if (replacement === wordMark) {
      const isTaken = this.#end === 'space' && this.#options.splitsAtWhiteSpace;
      if (!isTaken && this.#end !== 'beginning') this.#push(wordStart, start, end);
      this.#end = 'mark';
    } else if (replacement !== '') {
      this.#push(replacement, start, end);
      this.#end = 'character';
    }
  }

  /** Joins the parts. A text does not end with the beginning of a word. */
  finish(): void {
    const text = this.#parts.join('');
    let end = text.length;
    while (text.charCodeAt(end - 1) === space) end--;
    this.text = end === text.length ? text : text.slice(0, end);
  }

  /** Where units of `text` come from. They must be asked for in ascending order. */
  sources(): { readonly startOf: (at: number) => number; readonly endOf: (at: number) => number } {
    const [places, starts, ends] = [this.#places, this.#starts, this.#ends];
    let run = 0;
    const find = (at: number): number => {
      while (run + 1 < places.length && places[run + 1]! <= at) run++;
      return run;
    };
    return {
      startOf: (at) => starts[find(at)]! + (ends[run] === unitByUnit ? at - places[run]! : 0),
      /** The end of the unit before `at`. */
      endOf: (at) => (ends[find(at - 1)] === unitByUnit ? starts[run]! + at - places[run]! : ends[run]!),
    };
  }

  #push(part: string, start: number, end: number): void {
    this.#places.push(this.#length);
    this.#starts.push(start);
    this.#ends.push(end);
    this.#parts.push(part);
    this.#length += part.length;
  }
}

export function unigramNormalizer(options: UnigramTextOptions): UnigramNormalizer {
  const { joinsSpaces } = options;
  const table = replacementTable(options);
  const kindsKnown = new Uint8Array(0x110000);
  const kindAt = (text: string, at: number): number => {
    const code = text.codePointAt(at)!;
    return (kindsKnown[code] ||= table.kindOf(code));
  };

  /** The end of the characters that are looked at together with the one at `from`; negative if all are kept. */
  const clusterEnd = (text: string, from: number): number => {
    let isKept = kindAt(text, from) === kinds.kept;
    let at = from + lengthAt(text, from);
    for (let count = 1; at < text.length && count < charactersMax; count++) {
      const kind = kindAt(text, at);
      if (kind < kinds.joins) break;
      if (kind === kinds.joins) isKept = false;
      at += lengthAt(text, at);
    }
    return isKept ? -at : at;
  };

  /** Normalises `text[from, ...)` up to a place at or after `enough`, and returns that place. */
  const normalizeStep = (text: string, from: number, into: NormalText): number => {
    let enough = from + stepCharacters;
    let at = from;
    while (at < text.length) {
      const unit = text.charCodeAt(at);
      const kind = kindsKnown[unit]! || kindAt(text, at);
      if (at >= enough && (kind < kinds.joins || at === from)) break;
      if (kind === kinds.kept) {
        at += (unit & 0xfc00) === 0xd800 ? 2 : 1;
        continue;
      }
      if (kind === kinds.space) {
        const isSecond = at === from ? into.isAfterSpace : text.charCodeAt(at - 1) === space;
        if (!isSecond || (at > from && !joinsSpaces)) at += 1;
        else {
          into.copy(text, from, at);
          into.replace(wordStart, at, at + 1);
          from = at += 1;
        }
        continue;
      }
      // A mark belongs to the character before it, unless that is white space or belongs to others already.
      const isAlone = kind === kinds.replaced || at === from || text.charCodeAt(at - 1) === space;
      const start = isAlone ? at : at - lengthBefore(text, at);
      const end = clusterEnd(text, start);
      if (end < 0) {
        at = -end;
        continue;
      }
      into.copy(text, from, start);
      table.replaceIn(text, start, end, into);
      from = at = end;
      enough -= replacedCost * (end - start);
    }
    into.copy(text, from, at);
    return at;
  };

  return function* (text, into) {
    for (let from = 0; from < text.length; yield) from = normalizeStep(text, from, into);
    into.finish();
  };
}

/** Replaces the characters of a few, composed before. */
function replacementTable({ entries, splitsAtWhiteSpace }: UnigramTextOptions): {
  readonly kindOf: (code: number) => number;
  readonly replaceIn: (text: string, from: number, to: number, into: NormalText) => void;
} {
  const withSpaces = (text: string): string =>
    splitsAtWhiteSpace ? text.replaceAll(/\p{White_Space}/gu, wordStart) : text;
  const keys = [...entries.keys()];
  const replacements = [...entries.values()].map(withSpaces);
  const trie = new PieceTrie(keys.map((key, place) => [key, place]));
  const further = new Set<number>();
  for (const key of keys) {
    for (const [place, character] of Array.from(key).entries()) {
      if (place > 0) further.add(character.codePointAt(0)!);
    }
  }
  const kindOf = (code: number): number => {
    const character = String.fromCodePoint(code);
    if (code === space) return kinds.space;
    if (composes(code) || further.has(code)) return kinds.joins;
    const isKnown = trie.longest(character, 0, character.length) === character.length;
    if (isKnown || character === wordMark) return kinds.replaced;
    if (withSpaces(character) !== character) return kinds.replaced;
    return isPassed(code) ? kinds.passed : kinds.kept;
  };
  const replaceIn = (text: string, from: number, to: number, into: NormalText): void => {
    const given = text.slice(from, to);
    const parts = to - from === lengthAt(text, from) ? undefined : compose(given);
    const composed = parts?.map((part) => part.text).join('') ?? given;
    for (let at = 0; at < composed.length;) {
      const end = trie.longest(composed, at, composed.length);
      const next = end > at ? end : at + lengthAt(composed, at);
      const replacement = end > at ? replacements[trie.found]! : withSpaces(composed.slice(at, next));
      const [start, stop] = parts === undefined ? [0, given.length] : rangeOf(parts, at, next);
      into.replace(replacement, from + start, from + stop);
      at = next;
    }
  };
  return { kindOf, replaceIn };
}

/** The range that `[from, to)` of the composed text comes from. */
function rangeOf(parts: readonly ComposedPart[], from: number, to: number): readonly [number, number] {
  let start = -1;
  let end = 0;
  let at = 0;
  for (const part of parts) {
    if (at < to && at + part.text.length > from) {
      if (start < 0) start = part.start;
      end = Math.max(end, part.end);
    }
    at += part.text.length;
  }
  return [start, end];
}

function lengthAt(text: string, at: number): number {
  return text.codePointAt(at)! > 0xffff ? 2 : 1;
}

function lengthBefore(text: string, at: number): number {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00 ? 2 : 1;
}
