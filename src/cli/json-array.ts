/**
 * Elements of a file that is one JSON array, a block of the file at a time, so that memory does not grow with the array.
 * The array is split at the commas between its elements; what an element holds is left to the JSON parser.
 */
import type { Block } from './blocks.ts';
import { CommandFailure } from './failure.ts';
import { isBlank, lineBytesMax, type Line } from './jsonl.ts';

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** The blocks, and whether their text begins with an array. */
export async function beginsWithArray(
  blocks: AsyncGenerator<Block>,
): Promise<{ readonly isArray: boolean; readonly blocks: AsyncGenerator<Block> }> {
  const head: Block[] = [];
  let first: number | undefined;
  while (first === undefined) {
    const next = await blocks.next();
    if (next.done === true) break;
    head.push(next.value);
    first = next.value.bytes.find((byte) => !isSpace(byte) && !isByteOrderMark(byte));
  }
  const whole = async function* (): AsyncGenerator<Block> {
    try {
      yield* head;
      yield* blocks;
    } finally {
      await blocks.return(undefined);
    }
  };
  return { isArray: first === openBracket, blocks: whole() };
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

/** A byte of U+FEFF; before a JSON text it can be nothing else. */
function isByteOrderMark(byte: number): boolean {
  return byte === 0xef || byte === 0xbb || byte === 0xbf;
}

/** Numbered from 1, as if each were a line. The file must begin with an array. */
export async function* readElements(blocks: AsyncGenerator<Block>, name: string): AsyncGenerator<Line> {
  const splitter = new Splitter();
  let fileBytesRead = 0;
  let number = 0;
  for await (const { bytes, bytesRead } of blocks) {
    fileBytesRead = bytesRead;
    for (const element of splitter.elements(bytes)) {
      number += 1;
      yield { number, bytes: element, fileBytesRead };
    }
    if (splitter.textAfterEnd) {
      throw new CommandFailure('input_error', `cannot read ${name}: text follows the end of the array`);
    }
  }
  if (!splitter.ended) {
    throw new CommandFailure('input_error', `cannot read ${name}: the file ends within the array`);
  }
}

class Splitter {
  ended = false;
  textAfterEnd = false;
  /** 0 before the array, 1 between its elements. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  #parts: Buffer[] = [];
  #partBytes = 0;

  /** Elements that end in this block; `undefined` is one that is too long. */
  *elements(bytes: Buffer): Generator<Buffer | undefined> {
    let start = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (this.ended) {
        this.textAfterEnd ||= !isSpace(byte);
      } else if (this.#inString) {
        this.#continueString(byte);
      } else if (byte === quote) {
        this.#inString = true;
      } else if (byte === openBracket || byte === openBrace) {
        this.#depth += 1;
        if (this.#depth === 1) start = at + 1;
      } else if (byte === closeBracket || byte === closeBrace) {
        this.#depth -= 1;
        if (this.#depth > 0) continue;
        this.ended = true;
        const last = this.#take(bytes.subarray(start, at));
        if (last === undefined || !isBlank(last)) yield last;
      } else if (byte === comma && this.#depth === 1) {
        yield this.#take(bytes.subarray(start, at));
        start = at + 1;
      }
    }
    if (this.#depth > 0) this.#append(bytes.subarray(start));
  }

  #continueString(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === backslash) this.#escaped = true;
    else if (byte === quote) this.#inString = false;
  }

  #append(part: Buffer): void {
    this.#partBytes += part.length;
    if (this.#partBytes <= lineBytesMax) this.#parts.push(part);
    else this.#parts = [];
  }

  #take(end: Buffer): Buffer | undefined {
    this.#append(end);
    const element = this.#partBytes > lineBytesMax ? undefined : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partBytes = 0;
    return element;
  }
}
