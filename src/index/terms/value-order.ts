/** The order that ranges compare values by, of values in canonical form. The engine has the same (native/values/json_values.cpp). */

/**
 * A bound of a range has at most this many UTF-8 bytes (a string) or characters (a number). A longer value of a document lies
 * in no range (native/values/json_values.h).
 */
export const boundBytesMax = 256;

export function isNumber(value: string): boolean {
  return /^[-\d]/.test(value);
}

export function isString(value: string): boolean {
  return value.startsWith('"');
}

/** Whether a range may have this value as a bound. */
export function isBound(value: string): boolean {
  if (isNumber(value)) return value.length <= boundBytesMax && isInDoubleRange(value);
  return isString(value) && boundBytesOf(value) <= boundBytesMax;
}

/** `value` is a string or a number. */
export function boundBytesOf(value: string): number {
  return isNumber(value) ? value.length : Buffer.byteLength(JSON.parse(value) as string);
}

/** The engine orders numbers by their exact values far beyond the range of a double. */
export function isInDoubleRange(number: string): boolean {
  const double = Number(number);
  return Number.isFinite(double) && (double !== 0 || number === '0');
}

/** `sign` x 0.`digits` x 10^`power`. */
export interface Decimal {
  readonly sign: number;
  readonly digits: string;
  readonly power: number;
}

export function decimalOf(number: string): Decimal {
  const [, minus, digits = '', exponent = '0'] = /^(-?)(\d+)(?:e(-?\d+))?$/.exec(number) ?? [];
  if (digits === '0') return { sign: 0, digits, power: 0 };
  return { sign: minus === '-' ? -1 : 1, digits, power: digits.length + Number(exponent) };
}

export function compareDecimals(one: Decimal, other: Decimal): number {
  if (one.sign !== other.sign) return one.sign - other.sign;
  if (one.power !== other.power) return one.sign * (one.power - other.power);
  return one.sign * (Number(one.digits > other.digits) - Number(one.digits < other.digits));
}

/** By code points. Half a surrogate pair is a code point of its own. */
export function compareTexts(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  if (at > 0 && isFirstHalf(one.charCodeAt(at - 1))) at -= 1;
  return (one.codePointAt(at) ?? -1) - (other.codePointAt(at) ?? -1);
}

function isSecondHalf(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** The first text behind all that start with this one; `undefined` if there is none. */
export function textBehind(prefix: string): string | undefined {
  const points = Array.from(prefix, (point) => point.codePointAt(0)!);
  while (points.at(-1) === 0x10_ff_ff) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  const before = String.fromCodePoint(...points);
  // The second half of a surrogate pair behind the first one would be another code point.
  const isInPair = isSecondHalf(last + 1) && isFirstHalf(before.charCodeAt(before.length - 1));
  return before + String.fromCodePoint(isInPair ? 0xe000 : last + 1);
}
