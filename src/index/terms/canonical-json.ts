/**
 * Writes a JSON value in canonical form: equal values get the same text, and different values get different ones. The order
 * of an object's keys does not count. Of a key that is given twice the last value counts. Strings compare however they are
 * escaped, numbers by their exact value.
 *
 * A number stays text: its digits and a power of ten. 1, 1.0 and 10e-1 are all `1`, and 100 is `1e2`. As doubles 2^53 and
 * 2^53 + 1 would be equal. As an integer 1e999999999 would have a billion digits. So the work is linear in the bytes.
 *
 * The input must be JSON without white space between tokens, and nested no deeper than a program may recurse. Nothing is
 * checked here.
 */
import { assertInvariant } from '../../errors.ts';

/** Members of an object by name, names and values in canonical form. */
export function canonicalMembers(objectText: string): ReadonlyMap<string, string> {
  return new CanonicalReader(objectText).members();
}

/** Whether two objects have equal members. */
export function areEqualObjects(one: string, other: string): boolean {
  const [first, second] = canonicalItems(`[${one},${other}]`);
  return first === second;
}

/** A member as it is written. */
export interface WrittenMember {
  readonly name: string;
  readonly value: string;
}

/** Members of an object by name, the names in canonical form. */
export function writtenMembers(objectText: string): Map<string, WrittenMember> {
  const written = new Map<string, WrittenMember>();
  new CanonicalReader(objectText).members((name, start, { valueStart, end }) =>
    written.set(name, {
      name: objectText.slice(start, valueStart - 1),
      value: objectText.slice(valueStart, end),
    }),
  );
  return written;
}

export function objectTextOf(members: Iterable<WrittenMember>): string {
  return `{${Array.from(members, ({ name, value }) => `${name}:${value}`).join(',')}}`;
}

/** Items of an array, as they are written. */
export function writtenItems(arrayText: string): readonly string[] {
  const written: string[] = [];
  new CanonicalReader(arrayText).items((start, end) => written.push(arrayText.slice(start, end)));
  return written;
}

/** Items of an array, in canonical form. */
export function canonicalItems(arrayText: string): readonly string[] {
  return new CanonicalReader(arrayText).items();
}

const stringToken = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const comma = ','.charCodeAt(0);
const closeBracket = ']'.charCodeAt(0);
const closeBrace = '}'.charCodeAt(0);

class CanonicalReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** `note` is called with the place of each member. */
  members(
    note?: (name: string, start: number, value: { valueStart: number; end: number }) => void,
  ): Map<string, string> {
    const members = new Map<string, string>();
    this.#at += 1;
    while (this.#text[this.#at] !== '}') {
      const start = this.#at;
      const name = this.#string();
      // The colon.
      this.#at += 1;
      const valueStart = this.#at;
      members.set(name, this.#value());
      note?.(name, start, { valueStart, end: this.#at });
      if (this.#text[this.#at] === ',') this.#at += 1;
    }
    this.#at += 1;
    return members;
  }

  #value(): string {
    switch (this.#text[this.#at]) {
      case '{': {
        const members = [...this.members()].map(([name, value]) => `${name}:${value}`);
        return `{${members.toSorted().join(',')}}`;
      }
      case '[':
        return `[${this.items().join(',')}]`;
      case '"':
        return this.#string();
      default: {
        const token = this.#numberOrLiteral();
        return /^[tfn]/.test(token) ? token : canonicalNumber(token);
      }
    }
  }

  /** `note` is called with the place of each item. */
  items(note?: (start: number, end: number) => void): string[] {
    const items: string[] = [];
    this.#at += 1;
    while (this.#text[this.#at] !== ']') {
      const start = this.#at;
      items.push(this.#value());
      note?.(start, this.#at);
      if (this.#text[this.#at] === ',') this.#at += 1;
    }
    this.#at += 1;
    return items;
  }

  #string(): string {
    stringToken.lastIndex = this.#at;
    const token = stringToken.exec(this.#text)?.[0];
    assertInvariant(token !== undefined, 'a customer object is not compact JSON');
    this.#at = stringToken.lastIndex;
    return token.includes('\\') ? JSON.stringify(JSON.parse(token)) : token;
  }

  #numberOrLiteral(): string {
    const start = this.#at;
    let at = start;
    for (; at < this.#text.length; at += 1) {
      const unit = this.#text.charCodeAt(at);
      if (unit === comma || unit === closeBracket || unit === closeBrace) break;
    }
    this.#at = at;
    return this.#text.slice(start, at);
  }
}

/** The number as digits without leading or trailing zeros and a power of ten. Every zero is `0`, without sign or exponent. */
export function canonicalNumber(token: string): string {
  if (shortInteger.test(token)) return token;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = numberParts.exec(token) ?? [];
  const digits = whole + fraction;
  let start = 0;
  while (digits[start] === '0') start += 1;
  if (start === digits.length) return '0';
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  const shift = digits.length - end - fraction.length;
  const power = sum(exponent, shift);
  return `${sign}${digits.slice(start, end)}${power === '0' ? '' : `e${power}`}`;
}

/** A canonical number as people write it, if a double holds it. Other values stay as they are. */
export function plainNumber(value: string): string {
  if (!/^[-\d]/.test(value)) return value;
  const usual = String(Number(value));
  return Number.isFinite(Number(value)) && canonicalNumber(usual.replace('e+', 'e')) === value
    ? usual
    : value;
}

/** An integer that is its own canonical form. */
const shortInteger = /^(?:0|-?(?:[1-9]\d{0,14})?[1-9])$/;

const numberParts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/;

/**
 * `exponent + shift`. An exponent may have millions of digits, so all but the last 15 stay text. A `BigInt` would take
 * seconds for them.
 */
function sum(exponent: string, shift: number): string {
  const [, sign = '', digits = ''] = /^([-+]?)0*(\d*)$/.exec(exponent) ?? [];
  if (digits.length <= 15) return String(Number(`${sign}0${digits}`) + shift);
  const head = digits.slice(0, -15);
  const tail = Number(digits.slice(-15)) + (sign === '-' ? -shift : shift);
  const carry = Math.floor(tail / 1e15);
  const power = `${carried(head, carry)}${String(tail - carry * 1e15).padStart(15, '0')}`;
  return `${sign === '-' ? '-' : ''}${power.replace(/^0+/, '')}`;
}

/** Adds -1, 0 or 1 to a decimal integer above 0. */
function carried(digits: string, carry: number): string {
  if (carry === 0) return digits;
  const full = carry > 0 ? '9' : '0';
  let at = digits.length - 1;
  while (digits[at] === full) at -= 1;
  return `${digits.slice(0, Math.max(at, 0))}${Number(digits[at] ?? 0) + carry}${(carry > 0 ? '0' : '9').repeat(digits.length - 1 - at)}`;
}
