/**
 * The tokens of JSON (RFC 8259 sections 2, 3, 6 and 7) in UTF-8. Each function takes the place at which a token begins, and
 * reads no further than `limit`. It returns the place after the token, or the complement (`~`) of the place at which the
 * bytes are no JSON.
 */

export const quote = 0x22;
const backslash = 0x5c;
const zero = 0x30;
const nine = 0x39;

export function whiteSpaceEnd(bytes: Uint8Array, start: number, limit: number): number {
  let at = start;
  while (at < limit) {
    const byte = bytes[at]!;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    at += 1;
  }
  return at;
}

/** The end of a string, a number, `true`, `false` or `null`. */
export function scalarEnd(bytes: Uint8Array, start: number, limit: number): number {
  switch (bytes[start]) {
    case quote:
      return stringEnd(bytes, start, limit);
    case 0x74:
      return wordEnd(bytes, start, 'true');
    case 0x66:
      return wordEnd(bytes, start, 'false');
    case 0x6e:
      return wordEnd(bytes, start, 'null');
    default:
      return numberEnd(bytes, start, limit);
  }
}

/**
 * The end of a string. `JSON.parse` checks the bytes between its quotes later. `indexOf` searches megabytes at the speed of
 * memory, but a call costs as much as a loop over some fifty bytes. So a loop reads that many before each call. Otherwise a
 * text of escaped quotes would need a call for each quote.
 */
export function uncheckedStringEnd(bytes: Buffer, start: number): number {
  const limit = bytes.length;
  let at = start + 1;
  while (at < limit) {
    for (const pause = Math.min(at + 64, limit); at < pause;) {
      if (bytes[at] === quote) return at + 1;
      at += bytes[at] === backslash ? 2 : 1;
    }
    const found = bytes.indexOf(quote, at);
    if (found === -1) break;
    let backslashes = 0;
    while (found - backslashes > at && bytes[found - backslashes - 1] === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return found + 1;
    at = found + 1;
  }
  return ~limit;
}

function stringEnd(bytes: Uint8Array, start: number, limit: number): number {
  let at = start + 1;
  while (at < limit) {
    const byte = bytes[at]!;
    if (byte === quote) return at + 1;
    if (byte === backslash) {
      at = escapeEnd(bytes, at);
      if (at < 0) return at;
    } else if (byte < 0x20) return ~at;
    else at += 1;
  }
  return ~at;
}

function escapeEnd(bytes: Uint8Array, start: number): number {
  const kind = escapes[bytes[start + 1] ?? 0]!;
  if (kind !== unicodeEscape) return kind === plainEscape ? start + 2 : ~start;
  for (let at = start + 2; at < start + 6; at += 1) if (!isHexDigit(bytes[at] ?? 0)) return ~start;
  return start + 6;
}

const plainEscape = 1;
const unicodeEscape = 2;
/** The kind of an escape, by the byte after the backslash; 0 = none. */
const escapes = new Uint8Array(256);
for (const letter of '"\\/bfnrt') escapes[letter.charCodeAt(0)] = plainEscape;
escapes['u'.charCodeAt(0)] = unicodeEscape;

function isHexDigit(byte: number): boolean {
  const lower = byte | 0x20;
  return (byte >= zero && byte <= nine) || (lower >= 0x61 && lower <= 0x66);
}

function wordEnd(bytes: Uint8Array, start: number, word: string): number {
  for (let place = 0; place < word.length; place += 1) {
    if (bytes[start + place] !== word.charCodeAt(place)) return ~(start + place);
  }
  return start + word.length;
}

function numberEnd(bytes: Uint8Array, start: number, limit: number): number {
  let at = start;
  if (bytes[at] === 0x2d) at += 1;
  // A leading zero has no further digits before the point.
  at = bytes[at] === zero ? at + 1 : digitsEnd(bytes, at, limit);
  if (at > 0 && bytes[at] === 0x2e) at = digitsEnd(bytes, at + 1, limit);
  if (at > 0 && (bytes[at] === 0x65 || bytes[at] === 0x45)) {
    at += 1;
    if (bytes[at] === 0x2b || bytes[at] === 0x2d) at += 1;
    at = digitsEnd(bytes, at, limit);
  }
  return at;
}

function digitsEnd(bytes: Uint8Array, start: number, limit: number): number {
  let at = start;
  while (at < limit && bytes[at]! >= zero && bytes[at]! <= nine) at += 1;
  return at === start ? ~at : at;
}
