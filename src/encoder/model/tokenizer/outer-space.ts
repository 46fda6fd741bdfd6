/**
 * Strips outer white space as Python's `str.strip()`, which PyLate applies to every text. Unlike `trim()` it strips U+001C to
 * U+001F and U+0085, and keeps U+FEFF.
 */
export function withoutOuterSpace(text: string): string {
  let start = 0;
  let end = text.length;
  // A regular expression for the end would take time quadratic in the length of runs of spaces.
  while (start < end && isSpace(text[start]!)) start++;
  while (end > start && isSpace(text[end - 1]!)) end--;
  return text.slice(start, end);
}

function isSpace(unit: string): boolean {
  return (unit >= '\u001c' && unit <= '\u001f') || /\p{White_Space}/u.test(unit);
}
