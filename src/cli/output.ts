import { styleText } from 'node:util';

/**
 * What commands print. A command returns both of its faces, one JSON document and one text; the program
 * prints exactly one of them on standard output. Everything else (progress, warnings) goes to standard
 * error.
 */
export interface CommandResult {
  /** Printed with `--json`; totals that may pass 2^53 as decimal strings, like the API's. */
  readonly document: object;
  /** Printed without it. */
  readonly text: string;
  /** Not everything that was asked for happened. Exit code 1. */
  readonly failed?: boolean;
  /** What stopped the work halfway: reported like any failure, after the result; the document gets its `error`. */
  readonly error?: unknown;
}

// Line breaks and other controls would break the table, or drive the reader's terminal.
// oxlint-disable-next-line no-control-regex
const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** One line: control characters become spaces. */
export function oneLine(text: string): string {
  return text.replaceAll(controls, ' ');
}

/**
 * Left-aligned columns two spaces apart, with a header row; columns named in `numeric` align right. The header is bold
 * where standard output is a terminal that shows it (`styleText` looks at NO_COLOR too).
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
