/**
 * Picks the words of a text that look like identifiers, such as `E11.65`, `read_file` or `XMLHttpRequest`, for a metadata field.
 * An index with this field among its `match_fields` finds them as a whole.
 *
 * Words end at white space and at marks of East Asian sentences, and where ASCII letters or digits meet a letter of a script other
 * than Latin: `什么是E11.65` has the word `E11.65`. So do the words of a query.
 */
import type { Document } from '../types.ts';
import { jsonBytes, metadataBytesMax } from './metadata.ts';

const lengthMin = 3;
/** Unicode code points. */
const lengthMax = 64;
const identifiersMax = 64;

/** White space, and the marks between East Asian words. */
const between =
  /[\s\u{3001}\u{3002}\u{3008}-\u{3011}\u{3014}-\u{301b}\u{ff01}\u{ff08}\u{ff09}\u{ff0c}\u{ff1a}\u{ff1b}\u{ff1f}]+/u;
/** Letters and digits, also as full-width forms. */
const ascii = /[\dA-Za-z\u{ff10}-\u{ff19}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}]/u;
const otherLetter = /(?!\p{Script=Latin})\p{L}/u;
const combining = /\p{M}/u;
/** A sentence may put these around a word. */
const marks = '.,;:?!()"\'';
const sign = /[\p{Nd}_.]|\p{Ll}\p{Lu}/u;

/** Each once, at most 64, the first ones. They have 3 to 64 characters with a digit, an underscore, an inner dot or camelCase. */
export function identifiersIn(text: string): readonly string[] {
  const found = new Set<string>();
  for (const word of text.split(between).flatMap(wordsIn)) {
    const trimmed = withoutMarks(word);
    if (isIdentifier(trimmed)) found.add(trimmed);
    if (found.size === identifiersMax) break;
  }
  return [...found];
}

/** Cuts where ASCII letters or digits meet letters of another script. Signs between them stay with the former. */
function wordsIn(piece: string): readonly string[] {
  if (!otherLetter.test(piece)) return [piece];
  const words: string[] = [];
  let start = 0;
  let at = 0;
  let isOther: boolean | undefined;
  /** Behind the last letter or digit and its marks. */
  let lettersEnd = 0;
  for (const point of piece) {
    const isLetter = otherLetter.test(point);
    if (isLetter || ascii.test(point)) {
      if (isOther === !isLetter) {
        const cut = isLetter ? at : lettersEnd;
        words.push(piece.slice(start, cut));
        start = cut;
      }
      isOther = isLetter;
      lettersEnd = at + point.length;
    } else if (lettersEnd === at && combining.test(point)) lettersEnd += point.length;
    at += point.length;
  }
  return [...words, piece.slice(start)];
}

/** A dot is inside, because the marks at both ends are gone. */
function isIdentifier(trimmed: string): boolean {
  // A code point has one or two UTF-16 units.
  if (trimmed.length < lengthMin || trimmed.length > 2 * lengthMax || !sign.test(trimmed)) return false;
  const length = Array.from(trimmed).length;
  return length >= lengthMin && length <= lengthMax;
}

/** A regular expression would take quadratic time for many marks. */
function withoutMarks(written: string): string {
  let [start, end] = [0, written.length];
  while (start < end && marks.includes(written[start]!)) start += 1;
  while (end > start && marks.includes(written[end - 1]!)) end -= 1;
  return written.slice(start, end);
}

export interface IdentifierCount {
  /** Identifiers in the metadata of a document. */
  readonly kept: number;
  /** Those for which the metadata had no room. */
  readonly leftOut: number;
}

export interface WithIdentifiers extends IdentifierCount {
  readonly metadata: Document['metadata'];
}

/** Adds a field with those identifiers of the text that fit. Without any, the metadata stay as they are. */
export function withIdentifiers(
  metadata: Document['metadata'],
  field: string,
  text: string,
): WithIdentifiers {
  const identifiers = identifiersIn(text);
  if (identifiers.length === 0) return { metadata, kept: 0, leftOut: 0 };
  const kept: string[] = [];
  let room = metadataBytesMax - jsonBytes({ ...metadata, [field]: [] });
  for (const identifier of identifiers) {
    // The first one has no comma.
    const bytes = Buffer.byteLength(JSON.stringify(identifier)) + Number(kept.length > 0);
    if (bytes > room) continue;
    kept.push(identifier);
    room -= bytes;
  }
  return {
    metadata: kept.length === 0 ? metadata : { ...metadata, [field]: kept },
    kept: kept.length,
    leftOut: identifiers.length - kept.length,
  };
}
