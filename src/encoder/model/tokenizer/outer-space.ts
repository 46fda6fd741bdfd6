/**
 * Python's `str.strip()`, which PyLate applies to every text. It differs from `trim()`: U+001C to U+001F and U+0085 are white
 * space, U+FEFF is not.
 */
export function withoutOuterSpace(text: string): string {
  let start = 0;
  let end = text.length;
  // Loops, because a pattern for the end takes time quadratic in the length of runs of spaces.
  while (start < end && isSpace(text[start]!)) start++;
  while (end > start && isSpace(text[end - 1]!)) end--;
  return text.slice(start, end);
}

function isSpace(unit: string): boolean {
  return (unit >= '\u001c' && unit <= '\u001f') || /\p{White_Space}/u.test(unit);
}
