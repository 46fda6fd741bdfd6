/**
 * Lines of a JSONL file, plain or gzipped, with their numbers. Split at line feeds only, as JSON
 * Lines says: `node:readline` also splits at U+2028, U+2029 and a lone carriage return, the first two of
 * which may stand inside a JSON string. Memory is bounded: a line over `lineBytesMax` is skipped and reported.
 */
import { readBlocks, type Block } from './blocks.ts';
import { isObject, parseJson } from './json.ts';

export interface Line {
  /** Counted from 1. */
  readonly number: number;
  /** Without the line feed; `undefined` when the line is longer than `lineBytesMax`. */
  readonly bytes: Buffer | undefined;
  /** How much of the file (compressed, if it is) had been read when the line came out. */
  readonly fileBytesRead: number;
}

export interface ReadLinesOptions {
  readonly lineBytesMax?: number;
  /** Read in place of the file, which then is no more than a name. */
  readonly blocks?: AsyncGenerator<Block>;
}

export const lineBytesMax = 16 * 1024 * 1024;
const lineFeed = 0x0a;

/** Blank lines are counted but not yielded. An unreadable or damaged file is a `CommandFailure`. */
export async function* readLines(file: string, options: ReadLinesOptions = {}): AsyncGenerator<Line> {
  const bytesMax = options.lineBytesMax ?? lineBytesMax;
  let number = 0;
  let parts: Buffer[] = [];
  let partBytes = 0;
  let fileBytesRead = 0;
  const append = (part: Buffer): void => {
    partBytes += part.length;
    if (partBytes <= bytesMax) parts.push(part);
    else parts = [];
  };
  const finish = (): Line => {
    number += 1;
    const bytes = partBytes > bytesMax ? undefined : Buffer.concat(parts);
    parts = [];
    partBytes = 0;
    return { number, bytes, fileBytesRead };
  };
  for await (const { bytes, bytesRead } of options.blocks ?? readBlocks(file, file)) {
    fileBytesRead = bytesRead;
    let start = 0;
    for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
      append(bytes.subarray(start, end));
      start = end + 1;
      const line = finish();
      if (!isBlankLine(line)) yield line;
    }
    if (start < bytes.length) append(bytes.subarray(start));
  }
  if (partBytes > 0) {
    const line = finish();
    if (!isBlankLine(line)) yield line;
  }
}

function isBlankLine({ bytes }: Line): boolean {
  return bytes !== undefined && isBlank(bytes);
}

export function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d);
}

const decoder = new TextDecoder('utf-8', { fatal: true });

export type ParsedLine =
  | { readonly object: Readonly<Record<string, unknown>> }
  | { readonly problem: string };

/** The JSON object of a line, or what is wrong with it. Never quotes the line: it may be private text. */
export function parseLine(line: Line): ParsedLine {
  if (line.bytes === undefined) return { problem: 'line is too long' };
  let text: string;
  try {
    text = decoder.decode(line.bytes);
  } catch {
    return { problem: 'not valid UTF-8' };
  }
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { problem: 'not valid JSON' };
  }
  return isObject(value) ? { object: value } : { problem: 'not a JSON object' };
}
