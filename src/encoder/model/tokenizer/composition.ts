/**
 * Composes letters with the marks that follow them, as NFC does (UAX #15), but leaves the other marks where they are. NFC sorts
 * marks, and the vocabularies of SentencePiece hold Arabic and Hebrew marks in the order in which they are written. A text that is
 * in NFC does not change. A text in NFD becomes what it is in NFC.
 */

/** A part of a composed text, and the units of the given text that it comes from. */
export interface ComposedPart {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** Its combining class is 240, the highest. NFD puts it behind any other mark. */
const highestMark = '\u0345';
const mark = /^\p{M}$/u;

let composing: ReadonlySet<number> | undefined;

/** Whether some character before this one composes with it. */
export function composes(code: number): boolean {
  const isHangulPart = (code >= 0x1161 && code <= 0x1175) || (code >= 0x11a8 && code <= 0x11c2);
  return isHangulPart || (composing ??= lastParts()).has(code);
}

/** Whether composition looks past this character: it is a mark that canonical order may move. */
export function isPassed(code: number): boolean {
  const character = String.fromCodePoint(code);
  return mark.test(character) && !isStarter(character);
}

/** Composes a character with those behind it. Its time is linear in their number, because at most `charactersMax` are looked at. */
export function compose(cluster: string): ComposedPart[] {
  const parts: { text: string; start: number; end: number }[] = [];
  /** The part that the next character may compose with, and the mark between the two. */
  let base: { text: string; start: number; end: number } | undefined;
  let between = '';
  let at = 0;
  for (const character of cluster) {
    const end = at + character.length;
    const composed =
      base === undefined || isBlocked(character, between) ? undefined : single(base.text, character);
    if (base !== undefined && composed !== undefined) {
      base.text = composed;
      base.end = end;
    } else {
      const part = { text: character, start: at, end };
      parts.push(part);
      if (isStarter(character)) [base, between] = [part, ''];
      else between = character;
    }
    at = end;
  }
  return parts;
}

/** A mark of the same combining class between two characters keeps them apart, and so does one of a higher class. */
function isBlocked(character: string, between: string): boolean {
  if (between === '') return false;
  const inOrder = between.normalize('NFD') + character.normalize('NFD');
  return character === between || (character + between).normalize('NFD') !== inOrder;
}

function single(first: string, second: string): string | undefined {
  const composed = (first + second).normalize('NFC');
  return composed.length === (composed.codePointAt(0)! > 0xffff ? 2 : 1) ? composed : undefined;
}

/** Whether its combining class is 0, so that canonical order moves nothing past it. */
function isStarter(character: string): boolean {
  if (character === highestMark) return false;
  return (highestMark + character).normalize('NFD').startsWith(highestMark);
}

/** The last characters of those that compose, without Hangul. Ideographs and private characters decompose into none. */
function lastParts(): ReadonlySet<number> {
  const found = new Set<number>();
  for (const [first, last] of [
    [0xa0, 0x3400],
    [0xa000, 0xac00],
    [0xf900, 0x10000],
    [0x10000, 0x1f000],
  ] as const) {
    for (let code = first; code < last; code++) {
      const character = String.fromCodePoint(code);
      const parts = character.normalize('NFD');
      if (parts === character || parts.normalize('NFC') !== character) continue;
      found.add(Array.from(parts).at(-1)!.codePointAt(0)!);
    }
  }
  return found;
}
