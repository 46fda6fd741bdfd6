/**
 * Reads the elements of a file that is one JSON array, block by block, so memory does not grow with the array. It splits
 * the array at the commas between elements. The JSON parser reads each element later.
 */
import type { Block } from './blocks.ts';
import { inputError } from './failure.ts';
import { isBlank, lineBytesMax, Parts, type Line } from './jsonl.ts';

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

/** Before a JSON text, these bytes can only belong to U+FEFF. */
function isByteOrderMark(byte: number): boolean {
  return byte === 0xef || byte === 0xbb || byte === 0xbf;
}

/** Elements are numbered from 1, like lines. The file must begin with an array. */
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
    if (splitter.textAfterEnd) throw inputError(`cannot read ${name}: text follows the end of the array`);
  }
  if (!splitter.ended) throw inputError(`cannot read ${name}: the file ends within the array`);
}

class Splitter {
  ended = false;
  textAfterEnd = false;
  /** 0 before the array, 1 between its elements. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  readonly #parts = new Parts(lineBytesMax);

  /** Elements that end in this block. `undefined` stands for one that is too long. */
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
    if (this.#depth > 0) this.#parts.append(bytes.subarray(start));
  }

  #continueString(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === backslash) this.#escaped = true;
    else if (byte === quote) this.#inString = false;
  }

  #take(end: Buffer): Buffer | undefined {
    this.#parts.append(end);
    return this.#parts.take();
  }
}
