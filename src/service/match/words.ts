/**
 * Words of a query, and the spans of neighbouring words that may name a metadata value as a whole. Words are cut at white space,
 * and where ASCII letters or digits meet a letter of a script other than Latin: `什么是E11.65` has the words `什么是` and `E11.65`.
 */
import { keyOf, lettersOf } from '../../index/terms/loose-keys.ts';
import { matchBytesMax } from '../../index/terms/match-terms.ts';
import type { Word } from '../../input/words.ts';

/** Further words of a query match nothing. */
const wordsMax = 64;
const wordsOfSpanMax = 6;

/** Neighbouring words of a query. Places are in UTF-16 units, `end` excluded. */
export interface Span extends Word {
  /** The number of the first word. */
  readonly first: number;
  /** The number of words. */
  readonly words: number;
  /** The loose key of the query's text from `start` to `end`. */
  readonly key: string;
}

interface QueryWord extends Word {
  readonly letters: string;
}

/** The spans of the first words of a query that have a key, in the order of their places. */
export function spansOf(query: string): readonly Span[] {
  const words = wordsOf(query).map(({ start, end }) => ({
    start,
    end,
    letters: lettersOf(query.slice(start, end)),
  }));
  return words.flatMap((_, first) => spansFrom(query, words.slice(first, first + wordsOfSpanMax), first));
}

/** The spans that begin with the first of these words. */
function spansFrom(query: string, words: readonly QueryWord[], first: number): readonly Span[] {
  const spans: Span[] = [];
  const { start, letters: firstLetters } = words[0]!;
  let letters = '';
  for (const [at, { end, letters: lastLetters }] of words.entries()) {
    const text = query.slice(start, end);
    // Values are no longer, and their other spellings hardly are.
    if (Buffer.byteLength(text) > matchBytesMax) break;
    letters += lastLetters;
    const key = keyOf(letters, text);
    // A word of signs adds nothing at an end, except to a single character.
    const isShorter = key === letters && (firstLetters === '' || lastLetters === '');
    if (key !== undefined && !isShorter) spans.push({ start, end, first, words: at + 1, key });
  }
  return spans;
}

/** As they are, and as full-width forms, which NFKC makes ASCII. */
const ascii = /[0-9A-Za-z０-９Ａ-Ｚａ-ｚ]/;
const space = /\s/;
const otherScript = /(?!\p{Script=Latin})\p{L}/u;
const mark = /\p{M}/u;
const rest = /[^\p{L}\p{N}]/u;

type Kind = 'ascii' | 'space' | 'other script' | 'mark' | 'neutral' | 'rest';

function kindOf(point: string): Kind {
  if (ascii.test(point)) return 'ascii';
  if (space.test(point)) return 'space';
  if (otherScript.test(point)) return 'other script';
  if (mark.test(point)) return 'mark';
  return rest.test(point) ? 'rest' : 'neutral';
}

/** The first words of a query. Signs between two scripts belong to the ASCII letters: `C++、とは` is `C++、` and `とは`. */
function wordsOf(query: string): readonly Word[] {
  const words: Word[] = [];
  let start: number | undefined;
  /** The last kind of letters and digits in the word, and where the last letter ends. */
  let last: Kind | undefined;
  let lettersEnd = 0;
  let at = 0;
  const cutAt = (end: number, next?: number): void => {
    if (start !== undefined) words.push({ start, end });
    start = next;
    last = undefined;
  };
  for (const point of query) {
    if (words.length === wordsMax) return words;
    const kind = kindOf(point);
    if (kind === 'space') cutAt(at);
    else {
      start ??= at;
      if (kind === 'ascii' && last === 'other script') cutAt(lettersEnd, lettersEnd);
      if (kind === 'other script' && last === 'ascii') cutAt(at, at);
      if (kind !== 'rest') lettersEnd = at + point.length;
      if (kind !== 'rest' && kind !== 'mark') last = kind;
    }
    at += point.length;
  }
  cutAt(at);
  return words.slice(0, wordsMax);
}
