import { styleText } from 'node:util';

/**
 * The result of a command, as a JSON document and as text. The program prints exactly one of them on standard output.
 * Progress and warnings go to standard error.
 */
export interface CommandResult {
  /** Printed with `--json`. Totals that may pass 2^53 are decimal strings, as in the API. */
  readonly document: object;
  /** Printed without it. */
  readonly text: string;
  /** Something was not done. Exit code 1. */
  readonly failed?: boolean;
  /** The failure that stopped the work. It is reported after the result, and the document gets it as `error`. */
  readonly error?: unknown;
}

// Line breaks would break the table, and other control characters may drive the terminal.
// oxlint-disable-next-line no-control-regex
const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** One line: control characters become spaces. */
export function oneLine(text: string): string {
  return text.replaceAll(controls, ' ');
}

/** Several lines. All other control characters become spaces. */
export function printable(text: string): string {
  return text.split('\n').map(oneLine).join('\n');
}

/**
 * A table with a header row, and two spaces between columns. Columns in `numeric` align right. The header is bold on a
 * terminal that shows it (`styleText` respects NO_COLOR).
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  numeric: readonly string[] = [],
): string {
  const lines = [header, ...rows].map((row) => row.map(oneLine));
  const widths = header.map((_, column) => Math.max(...lines.map((row) => (row[column] ?? '').length)));
  return lines
    .map((row) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return numeric.includes(header[column] ?? '') ? cell.padStart(width) : cell.padEnd(width);
        })
        .join('  ')
        .trimEnd(),
    )
    .map((line, row) => (row === 0 ? styleText('bold', line) : line))
    .join('\n');
}

/** CSV (RFC 4180), without the last line feed, which is printed after each result. */
export function csv(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const quoted = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return [header, ...rows].map((row) => `${row.map(quoted).join(',')}\r`).join('\n');
}

/** `name  value` lines. */
export function fields(pairs: readonly (readonly [string, string])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${oneLine(value)}`.trimEnd()).join('\n');
}

/** ISO 8601 UTC, as everywhere in the API. */
export function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

export function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
