/** Tables for people. */
import type { Spread } from './statistics.ts';

/** Lines of a Markdown table. */
export function markdownTable(
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): readonly string[] {
  return [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
}

/** A line of columns of one width: the first cells to the left, the others to the right. */
export function columns(
  cells: readonly string[],
  { first, others, left = 1 }: { readonly first: number; readonly others: number; readonly left?: number },
): string {
  return cells.map((cell, at) => (at < left ? cell.padEnd(first) : cell.padStart(others))).join('');
}

/** `median (minimum..maximum)` */
export function spreadText({ median, minimum, maximum }: Spread, digits: number): string {
  return `${median.toFixed(digits)} (${minimum.toFixed(digits)}..${maximum.toFixed(digits)})`;
}
