/**
 * Loose keys, by which a word of a query and a metadata value match as a whole. `E11.65`, `e11 65` and `E1165` have one key.
 *
 * A key is the text in Unicode NFKC and lower case (UAX 15), of which letters, marks and numbers remain. So 1.10 and 11.0 have one
 * key, too. A key of one character says little: `C`, `C++` and `C#` match only as they are written.
 */

const outside = /[^\p{L}\p{M}\p{N}]+/gu;
/** Marks that a sentence puts around a word. */
const marksAtEnds = /^[.,;:?!()"']+|[.,;:?!()"']+$/g;

/** `undefined` for a text without letters, marks and numbers. */
export function looseKey(text: string): string | undefined {
  return keyOf(lettersOf(text), text);
}

/** The letters, marks and numbers of a text. Those of several words one after the other are those of the words in a row. */
export function lettersOf(text: string): string {
  // Lower case may leave NFKC.
  const folded = text.normalize('NFKC').toLowerCase().normalize('NFKC');
  // A sigma at the end of a word is a sigma.
  return folded.replace(outside, '').replaceAll('ς', 'σ');
}

/** The loose key of a text with these letters (`lettersOf`). */
export function keyOf(letters: string, text: string): string | undefined {
  if (letters === '') return undefined;
  // No other key has a sign. A half of a surrogate pair is hashed as U+FFFD.
  return isOneCharacter(letters) ? `=${text.toWellFormed().trim().replace(marksAtEnds, '')}` : letters;
}

function isOneCharacter(text: string): boolean {
  return text.length === (text.codePointAt(0)! > 0xffff ? 2 : 1);
}
