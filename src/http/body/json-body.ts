/**
 * Reads the JSON of a request (RFC 8259) in one pass over its bytes. The pass stops at the first bound that it meets, so no
 * body costs more than a few nanoseconds a byte. `JSON.parse` builds all values before anything can be checked: 5 MiB of
 * brackets or of distinct keys take it seconds.
 *
 * A customer's own objects (metadata, a metadata schema, a filter) do not become values. They are checked and kept as text.
 * So numbers keep every digit, and the text that is measured is the text that is stored and returned. The rest is small by
 * the contract and becomes plain values. No object may have a name twice. `__proto__` is an ordinary key.
 */
import { isUtf8 } from 'node:buffer';
import { ServiceError, assertInvariant, invalid } from '../../errors.ts';
import { dottedPath } from '../../input/issue-words.ts';
import { cut, repeatedName, type JsonPath } from '../../service/repeated-names.ts';
import { quote, scalarEnd, uncheckedStringEnd, whiteSpaceEnd } from './json-tokens.ts';
import { metadataBytesMax } from '../../service/contract.ts';
import { documentsMax, metadataDepthMax, queriesMax } from '../limits.ts';

export class CustomerObject {
  /** As it was sent, without white space between tokens; at most `metadataBytesMax` bytes as UTF-8. */
  readonly text: string;
  /** Members of the outermost object. */
  readonly members: number;

  constructor(text: string, members: number) {
    this.text = text;
    this.members = members;
  }
}

/** In every request, fields of these names hold customer objects. */
const customerFields: ReadonlySet<string> = new Set([
  'metadata',
  'metadata_merge',
  'metadata_schema',
  'filter',
  'where',
]);
/** One for each document, or two for each query. */
const customerObjectsMax = Math.max(documentsMax, 2 * queriesMax);
export interface JsonBounds {
  /** Items of the longest array. */
  readonly itemsMax: number;
  /** Values outside customer objects. */
  readonly valuesMax: number;
  /** Names of fields that hold customer objects. */
  readonly customerFields: ReadonlySet<string>;
}

/**
 * The bounds of a route that names no others. `documents` is the longest array of the contract. It needs some 200 values. The
 * others are for unknown properties, which errors name.
 */
const usualBounds: JsonBounds = { itemsMax: documentsMax, valuesMax: 4_096, customerFields };

export interface JsonReading {
  readonly bounds?: JsonBounds | undefined;
  /** Whether members that are null count as absent. */
  readonly dropsNulls?: boolean;
}

/** Throws a `validation_error` that names the place and never quotes a value. */
export function readJsonBody(bytes: Buffer, { bounds, dropsNulls }: JsonReading = {}): unknown {
  if (!isUtf8(bytes)) throw malformed('the body is not UTF-8');
  return new Reader(withoutByteOrderMark(bytes), bounds ?? usualBounds, dropsNulls === true).read();
}

/** RFC 8259 section 8.1 allows a parser to ignore it. */
function withoutByteOrderMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const openBrace = 0x7b;
/** The difference between the codes of an opening bracket or brace and its closing one. */
const toClose = 2;
const startOfNull = 0x6e;
const endOfBytes = -1;

const tooDeep = `must nest at most ${metadataDepthMax} levels`;

/** Customer objects are copied to this buffer. A read is synchronous, so one buffer is enough. */
const copied = Buffer.allocUnsafe(metadataBytesMax);

class Reader {
  readonly #bytes: Buffer;
  readonly #bounds: JsonBounds;
  readonly #dropsNulls: boolean;
  #at = 0;
  /** Keys and positions that lead to the current value. */
  readonly #path: (string | number)[] = [];
  #values = 0;
  #customerObjects = 0;
  #copiedBytes = 0;

  constructor(bytes: Buffer, bounds: JsonBounds, dropsNulls: boolean) {
    this.#bytes = bytes;
    this.#bounds = bounds;
    this.#dropsNulls = dropsNulls;
  }

  read(): unknown {
    const value = this.#value(1);
    if (this.#peek() !== endOfBytes) throw this.#malformed();
    return value;
  }

  /** `depth` counts the containers around the value, and the value itself if it is one. */
  #value(depth: number): unknown {
    const byte = this.#peek();
    const { valuesMax } = this.#bounds;
    this.#values += 1;
    if (this.#values > valuesMax)
      throw this.#refusedAtTop('too_big', `must hold at most ${valuesMax} values`);
    if (byte !== openBrace && byte !== openBracket) return this.#scalar();
    if (depth > metadataDepthMax) throw this.#refusedAtTop('too_deep', tooDeep);
    return byte === openBrace ? this.#object(depth) : this.#array(depth);
  }

  #object(depth: number): Record<string, unknown> {
    // Without a prototype, `__proto__` is an ordinary key.
    const object = Object.create(null) as Record<string, unknown>;
    for (let more = this.#first(openBrace); more; more = this.#next(openBrace)) {
      const key = this.#key();
      this.#path.push(cut(key));
      if (Object.hasOwn(object, key)) throw this.#repeated(this.#path);
      object[key] = this.#isCustomerObject(key) ? this.#customerObject() : this.#value(depth + 1);
      this.#path.pop();
    }
    if (this.#dropsNulls) for (const key of Object.keys(object)) if (object[key] === null) delete object[key];
    return object;
  }

  /** Where null counts as absent, the field of a customer object may be null. */
  #isCustomerObject(key: string): boolean {
    if (!this.#bounds.customerFields.has(key)) return false;
    return !this.#dropsNulls || this.#peek() !== startOfNull;
  }

  #array(depth: number): unknown[] {
    const items: unknown[] = [];
    const { itemsMax } = this.#bounds;
    for (let more = this.#first(openBracket); more; more = this.#next(openBracket)) {
      if (items.length === itemsMax) throw this.#refused('too_big', `must have at most ${itemsMax} items`);
      this.#path.push(items.length);
      items.push(this.#value(depth + 1));
      this.#path.pop();
    }
    return items;
  }

  #key(): string {
    if (this.#peek() !== quote) throw this.#malformed();
    const key = this.#scalar() as string;
    this.#pass(colon);
    return key;
  }

  #scalar(): unknown {
    const bytes = this.#bytes;
    const start = this.#at;
    this.#passTo(
      bytes[start] === quote ? uncheckedStringEnd(bytes, start) : scalarEnd(bytes, start, bytes.length),
    );
    try {
      return JSON.parse(bytes.toString('utf8', start, this.#at));
    } catch {
      // The message of `JSON.parse` quotes the body, which must reach neither answers nor logs. The place may.
      const end = scalarEnd(bytes, start, bytes.length);
      assertInvariant(end < 0, 'a token is JSON here and not to JSON.parse');
      this.#at = ~end;
      throw this.#malformed();
    }
  }

  #customerObject(): CustomerObject {
    this.#customerObjects += 1;
    if (this.#customerObjects > customerObjectsMax) {
      throw this.#refusedAtTop('too_big', `must hold at most ${customerObjectsMax} customer objects`);
    }
    if (this.#peek() !== openBrace) throw this.#refused('invalid_type', 'must be an object');
    this.#copiedBytes = 0;
    const members = this.#copyContainer(openBrace, 1);
    const text = copied.toString('utf8', 0, this.#copiedBytes);
    const repeated = repeatedName(text);
    if (repeated !== undefined) throw this.#repeated([...this.#path, ...repeated]);
    return new CustomerObject(text, members);
  }

  /** Copies an object or an array and returns the number of its members. */
  #copyContainer(open: number, depth: number): number {
    if (depth > metadataDepthMax) throw this.#refused('too_deep', tooDeep);
    let members = 0;
    this.#copyByte(open);
    for (let more = this.#first(open); more; more = this.#next(open)) {
      if (members > 0) this.#copyByte(comma);
      members += 1;
      if (open === openBrace) {
        if (this.#peek() !== quote) throw this.#malformed();
        this.#copyScalar();
        this.#pass(colon);
        this.#copyByte(colon);
      }
      const byte = this.#peek();
      if (byte === openBrace || byte === openBracket) this.#copyContainer(byte, depth + 1);
      else this.#copyScalar();
    }
    this.#copyByte(open + toClose);
    return members;
  }

  #copyScalar(): void {
    const bytes = this.#bytes;
    const start = this.#at;
    const last = start + metadataBytesMax - this.#copiedBytes;
    const end = scalarEnd(bytes, start, Math.min(last + 1, bytes.length));
    if (end > last || ~end > last) throw this.#tooLong();
    this.#passTo(end);
    const shift = this.#copiedBytes - start;
    for (let at = start; at < end; at += 1) copied[at + shift] = bytes[at]!;
    this.#copiedBytes = end + shift;
  }

  #copyByte(byte: number): void {
    if (this.#copiedBytes === metadataBytesMax) throw this.#tooLong();
    copied[this.#copiedBytes] = byte;
    this.#copiedBytes += 1;
  }

  /** Passes the opening bracket, and the closing one if it follows. Returns whether there is a first member. */
  #first(open: number): boolean {
    this.#at += 1;
    if (this.#peek() !== open + toClose) return true;
    this.#at += 1;
    return false;
  }

  /** Passes the comma or the closing bracket after a member. Returns whether there is a next member. */
  #next(open: number): boolean {
    const byte = this.#peek();
    if (byte !== comma && byte !== open + toClose) throw this.#malformed();
    this.#at += 1;
    return byte === comma;
  }

  #pass(byte: number): void {
    if (this.#peek() !== byte) throw this.#malformed();
    this.#at += 1;
  }

  /** Passes white space. Returns the byte after it, which is not passed. */
  #peek(): number {
    const byte = this.#bytes[this.#at]!;
    if (byte > 0x20) return byte;
    this.#at = whiteSpaceEnd(this.#bytes, this.#at, this.#bytes.length);
    return this.#at < this.#bytes.length ? this.#bytes[this.#at]! : endOfBytes;
  }

  /** Passes a token. `end` is what a function of `json-tokens.ts` returned. */
  #passTo(end: number): void {
    this.#at = end < 0 ? ~end : end;
    if (end < 0) throw this.#malformed();
  }

  #tooLong(): ServiceError {
    return this.#refused('too_big', `must have at most ${metadataBytesMax} bytes`);
  }

  #repeated(path: JsonPath): ServiceError {
    return this.#refused('duplicate', 'must occur only once in its object', path);
  }

  #refused(code: string, message: string, path: JsonPath = this.#path): ServiceError {
    return invalid(dottedPath(path), message, code);
  }

  /** The issue names the field of the body in which the bound was met. */
  #refusedAtTop(code: string, message: string): ServiceError {
    return this.#refused(code, message, this.#path.slice(0, 1));
  }

  #malformed(): ServiceError {
    if (this.#at >= this.#bytes.length) return malformed('the body is not valid JSON: it ends too early');
    let line = 1;
    let lineStart = 0;
    for (let at = 0; at < this.#at; at += 1) {
      if (this.#bytes[at] !== 0x0a) continue;
      line += 1;
      lineStart = at + 1;
    }
    const column = this.#bytes.toString('utf8', lineStart, this.#at).length + 1;
    return malformed(`the body is not valid JSON: see line ${line}, column ${column}`);
  }
}

function malformed(message: string): ServiceError {
  return new ServiceError('validation_error', message, {
    issues: [{ path: '', message, code: 'invalid_json' }],
  });
}
