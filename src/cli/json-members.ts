/**
 * Reads the members of one array or object in a JSON file, block by block, so memory does not grow with the file. It splits
 * at the commas between members. The JSON parser reads each member later. All other parts of the file are skipped, without
 * being held.
 */
import type { Block } from './blocks.ts';
import { inputError } from './failure.ts';
import { parseGivenJson } from './json.ts';
import { isBlank, lineBytesMax, Parts, type Line } from './jsonl.ts';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

const headBytesMax = 64 * 1024;
/** A longer name is none that a path has. */
const nameBytesMax = 1024;

export interface Head {
  /** Without a byte order mark and leading space. At least `headBytesMax` bytes, unless its first value ends before. */
  readonly text: string;
  /** All blocks. */
  readonly blocks: AsyncGenerator<Block>;
}

/** Looks at the beginning of a JSON file. */
export async function headOf(blocks: AsyncGenerator<Block>): Promise<Head> {
  const read: Block[] = [];
  let bytes = 0;
  let looked = 0;
  let text = '';
  while (bytes < headBytesMax) {
    const next = await blocks.next();
    if (next.done === true) break;
    read.push(next.value);
    bytes += next.value.bytes.length;
    // Small blocks are not looked at again for each of them.
    if (bytes < 2 * looked) continue;
    looked = bytes;
    text = textOf(read);
    if (beginningOf(text)?.isWhole === true) break;
  }
  const whole = async function* (): AsyncGenerator<Block> {
    try {
      yield* read;
      yield* blocks;
    } finally {
      await blocks.return(undefined);
    }
  };
  return { text: textOf(read), blocks: whole() };
}

function textOf(blocks: readonly Block[]): string {
  return Buffer.concat(blocks.map(({ bytes }) => bytes.subarray(0, headBytesMax)))
    .toString()
    .replace(/^\uFEFF?[ \t\r\n]*/, '');
}

export interface Beginning {
  /** It has the members that end within the part that was read. */
  readonly value: unknown;
  readonly isWhole: boolean;
  /** Lines of the part that was read. */
  readonly lines: number;
}

/** The object or array with which a text begins. `undefined` = there is none, or it is no JSON. */
export function beginningOf(text: string): Beginning | undefined {
  if (!/^[[{]/.test(text)) return undefined;
  const closers: string[] = [];
  let line = 1;
  /** Up to here, in so many lines, there are whole members. */
  let end = 0;
  let lines = 1;
  /** Containers that have ended since. */
  let ended: string[] = [];
  let isWhole = false;
  for (const { index, 0: token } of text.matchAll(/"(?:[^"\\\n]|\\.)*"|["[\]{},\n]/g)) {
    if (token === '\n') line += 1;
    else if (token === '"') break;
    else if (token === '{' || token === '[') closers.push(token === '{' ? '}' : ']');
    else if (token === '}' || token === ']') {
      if (closers.pop() !== token) return undefined;
      ended.push(token);
      isWhole = closers.length === 0;
      if (isWhole) {
        end = index + 1;
        lines = line;
        ended = [];
        break;
      }
    }
    if (token === ',' || token === '{' || token === '[') {
      end = token === ',' ? index : index + 1;
      lines = line;
      ended = [];
    }
  }
  const closing = [...ended, ...closers.toReversed()].join('');
  try {
    return { value: parseGivenJson(text.slice(0, end) + closing), isWhole, lines };
  } catch {
    return undefined;
  }
}

/** The elements of a file that is one array, numbered from 1 like lines. */
export async function* readElements(blocks: AsyncGenerator<Block>, name: string): AsyncGenerator<Line> {
  yield* readMembers(blocks, { name, path: [], isAlone: true });
}

export interface Member extends Line {
  /** With its name, if it is one of an object. */
  readonly bytes: Buffer | undefined;
  /** Counted from 1: a file may have several values, one behind the other. */
  readonly value: number;
  /** Why the value has none. It then stands here itself. */
  readonly problem?: string;
}

export interface MembersAt {
  /** Name in messages. */
  readonly name: string;
  /** Names of the objects around the members, from outside. */
  readonly path: readonly string[];
  /** Nothing may follow the first value. */
  readonly isAlone?: boolean;
  /** Values without the path are passed over. */
  readonly isOptional?: boolean;
}

/** The members of the arrays or objects at a path, numbered from 1 like lines. A value without the path is a problem. */
export async function* readMembers(
  blocks: AsyncGenerator<Block>,
  { name, path, isAlone = false, isOptional = false }: MembersAt,
): AsyncGenerator<Member> {
  const splitter = new Splitter(path);
  let number = 0;
  for await (const { bytes, bytesRead } of blocks) {
    for (const member of splitter.members(bytes)) {
      if (isOptional && member.problem !== undefined) continue;
      number += 1;
      yield { ...member, number, fileBytesRead: bytesRead };
    }
    if (splitter.hasOtherText || (isAlone && splitter.values > 1))
      throw inputError(`cannot read ${name}: text follows the end of the ${splitter.kind}`);
  }
  if (splitter.depth > 0) throw inputError(`cannot read ${name}: the file ends within the ${splitter.kind}`);
}

class Splitter {
  depth = 0;
  hasOtherText = false;
  /** The values of the file that have begun, and what the first of them is. */
  values = 0;
  kind: 'array' | 'object' = 'array';
  readonly #path: readonly string[];
  /** How many of the open containers lead to the members. The last one holds them. */
  #entered = 0;
  /** The last value that has the path. */
  #found = 0;
  #inString = false;
  #escaped = false;
  /** Where the member or the name begins in this block. */
  #start = 0;
  /** The last string before a colon, while the path is looked for. */
  #name: string | undefined;
  readonly #nameParts = new Parts(nameBytesMax);
  readonly #parts = new Parts(lineBytesMax);

  constructor(path: readonly string[]) {
    this.#path = path;
  }

  /** Members that end in this block. */
  *members(bytes: Buffer): Generator<Omit<Member, 'number' | 'fileBytesRead'>> {
    this.#start = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (this.#inString) {
        this.#continueString(byte, bytes, at);
      } else if (this.depth === 0 && byte !== openBracket && byte !== openBrace) {
        this.hasOtherText ||= this.values > 0 && !isSpace(byte);
      } else if (byte === quote) {
        this.#inString = true;
        if (!this.#looksForName) continue;
        this.#nameParts.take();
        this.#start = at;
      } else if (byte === openBracket || byte === openBrace) {
        this.#open(byte, at);
      } else if (byte === closeBracket || byte === closeBrace) {
        const last = this.#isInTarget ? this.#take(bytes.subarray(this.#start, at)) : undefined;
        if (last !== undefined && (last.bytes === undefined || !isBlank(last.bytes))) yield last;
        this.#close();
        if (this.depth === 0 && this.#found < this.values) yield this.#missing();
      } else if (byte === comma && this.#isInTarget) {
        yield this.#take(bytes.subarray(this.#start, at));
        this.#start = at + 1;
      } else if (byte === colon && this.#looksForName) {
        this.#name = nameIn(this.#nameParts.take());
      }
    }
    if (this.#holdsMember) this.#parts.append(bytes.subarray(this.#start));
    else if (this.#inString && this.#looksForName) this.#nameParts.append(bytes.subarray(this.#start));
  }

  get #holdsMember(): boolean {
    return this.#entered === this.#path.length + 1;
  }

  /** Directly between the members. */
  get #isInTarget(): boolean {
    return this.#holdsMember && this.depth === this.#entered;
  }

  /** Directly in an object that leads to the members. */
  get #looksForName(): boolean {
    return !this.#holdsMember && this.depth === this.#entered && this.depth > 0;
  }

  #open(byte: number, at: number): void {
    const isNext = this.depth === 0 || (this.#looksForName && this.#name === this.#path[this.#entered - 1]);
    if (this.values === 0) this.kind = byte === openBrace ? 'object' : 'array';
    if (this.depth === 0) this.values += 1;
    this.depth += 1;
    if (!isNext) return;
    this.#entered += 1;
    this.#name = undefined;
    this.#start = at + 1;
    if (this.#holdsMember) this.#found = this.values;
  }

  #close(): void {
    if (this.depth === this.#entered) this.#entered -= 1;
    this.depth -= 1;
  }

  #continueString(byte: number, bytes: Buffer, at: number): void {
    if (this.#escaped) {
      this.#escaped = false;
    } else if (byte === backslash) {
      this.#escaped = true;
    } else if (byte === quote) {
      this.#inString = false;
      if (this.#looksForName) this.#nameParts.append(bytes.subarray(this.#start, at + 1));
    }
  }

  #take(end: Buffer): Omit<Member, 'number' | 'fileBytesRead'> {
    this.#parts.append(end);
    return { bytes: this.#parts.take(), value: this.values };
  }

  #missing(): Omit<Member, 'number' | 'fileBytesRead'> {
    const problem = `there are no rows: it has no ${JSON.stringify(this.#path.join('.'))}`;
    return { bytes: Buffer.alloc(0), value: this.values, problem };
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

/** `undefined` = too long. */
function nameIn(bytes: Buffer | undefined): string | undefined {
  try {
    return JSON.parse(String(bytes)) as string;
  } catch {
    return undefined;
  }
}
