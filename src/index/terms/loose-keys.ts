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
  const written = text.trim().replace(marksAtEnds, '');
  // Lower case may leave NFKC.
  const folded = written.normalize('NFKC').toLowerCase().normalize('NFKC');
  const key = folded.replace(outside, '');
  if (key === '') return undefined;
  // No other key has a sign.
  return isOneCharacter(key) ? `=${written}` : key;
}

function isOneCharacter(text: string): boolean {
  return text.length === (text.codePointAt(0)! > 0xffff ? 2 : 1);
}
