/**
 * Reads the lines of a JSONL file, plain or gzipped, with their numbers. It splits at line feeds only, as JSON Lines says.
 * `node:readline` also splits at U+2028 and U+2029, which may stand inside a JSON string. A line over `lineBytesMax` is
 * skipped and reported, so memory is bounded.
 */
import { readBlocks, type Block } from './blocks.ts';
import { isObject, parseGivenJson, RepeatedNameError } from './json.ts';

export interface Line {
  /** Counted from 1. */
  readonly number: number;
  /** Without the line feed; `undefined` when the line is longer than `lineBytesMax`. */
  readonly bytes: Buffer | undefined;
  /** Bytes of the file (compressed, if it is) that were read when the line came out. */
  readonly fileBytesRead: number;
}

export interface ReadLinesOptions {
  readonly lineBytesMax?: number;
  /** Replaces the content of the file, which then is only a name. */
  readonly blocks?: AsyncGenerator<Block>;
}

export const lineBytesMax = 16 * 1024 * 1024;
const lineFeed = 0x0a;

/** The parts of a line or of an element, up to a bound. */
export class Parts {
  bytes = 0;
  readonly #bytesMax: number;
  #parts: Buffer[] = [];

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  append(part: Buffer): void {
    this.bytes += part.length;
    if (this.bytes <= this.#bytesMax) this.#parts.push(part);
    else this.#parts = [];
  }

  /** Begins anew. `undefined` = the parts were longer than the bound. */
  take(): Buffer | undefined {
    const whole = this.bytes > this.#bytesMax ? undefined : Buffer.concat(this.#parts);
    this.bytes = 0;
    this.#parts = [];
    return whole;
  }
}

/** Blank lines are counted but not yielded. An unreadable or damaged file is a `CommandFailure`. */
export async function* readLines(file: string, options: ReadLinesOptions = {}): AsyncGenerator<Line> {
  const parts = new Parts(options.lineBytesMax ?? lineBytesMax);
  let number = 0;
  let fileBytesRead = 0;
  const finish = (): Line => {
    number += 1;
    return { number, bytes: parts.take(), fileBytesRead };
  };
  for await (const { bytes, bytesRead } of options.blocks ?? readBlocks(file, file)) {
    fileBytesRead = bytesRead;
    let start = 0;
    for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
      parts.append(bytes.subarray(start, end));
      start = end + 1;
      const line = finish();
      if (!isBlankLine(line)) yield line;
    }
    if (start < bytes.length) parts.append(bytes.subarray(start));
  }
  if (parts.bytes > 0) {
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

/** Parses a line as a JSON object, or names the problem. The problem never quotes the line, which may be private. */
export function parseLine({ bytes }: Line): ParsedLine {
  const parsed = parseValue(bytes);
  if ('problem' in parsed) return parsed;
  return isObject(parsed.value) ? { object: parsed.value } : { problem: 'not a JSON object' };
}

export function parseValue(
  bytes: Buffer | undefined,
): { readonly value: unknown } | { readonly problem: string } {
  if (bytes === undefined) return { problem: 'line is too long' };
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { problem: 'not valid UTF-8' };
  }
  try {
    return { value: parseGivenJson(text) };
  } catch (error) {
    return { problem: error instanceof RepeatedNameError ? error.message : 'not valid JSON' };
  }
}
