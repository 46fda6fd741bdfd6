/**
 * Converts values of a Parquet file to JSON, with all their digits. Timestamps become ISO 8601 with the digits of their unit,
 * so their strings sort by time. Dates have no time. JSON has no NaN and no infinities: such a field is left out, and in a
 * list it becomes null.
 */
import { isUtf8 } from 'node:buffer';
import { isObject, parseGivenJson, parseJson, RepeatedNameError } from '../../json.ts';

/** A leading U+FEFF belongs to the value. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export function text(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Converts a value without an annotation. Throws the error that `json` returned. */
export function plain(value: unknown): unknown {
  if (value instanceof RepeatedNameError) throw value;
  if (typeof value === 'bigint') return parseJson(String(value));
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (value instanceof Uint8Array)
    return isUtf8(value) ? decoder.decode(value) : Buffer.from(value).toString('base64');
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, plain(inner)]));
}

/** Bytes are two's complement, with the highest byte first. */
export function integerOf(value: unknown): bigint {
  if (!(value instanceof Uint8Array)) return BigInt(value as number | bigint);
  const unsigned = value.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  return BigInt.asIntN(value.length * 8, unsigned);
}

/** 128 bits, with the lowest byte first. */
export function wideInteger(bytes: Uint8Array, isSigned: boolean): unknown {
  const signed = integerOf(bytes.toReversed());
  return plain(isSigned ? signed : BigInt.asUintN(128, signed));
}

export function decimal(unscaled: bigint, scale: number): unknown {
  const sign = unscaled < 0n ? '-' : '';
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
  const point = digits.length - scale;
  return parseJson(
    scale === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`,
  );
}

interface FloatType {
  readonly round: (value: number) => number;
  /** Smaller values have fewer bits. */
  readonly fullFrom: number;
  /** Decimals of so many digits survive in a value of all bits. */
  readonly digitsMin: number;
  /** So many digits tell any two values apart. */
  readonly digitsMax: number;
}

export const float32: FloatType = { round: Math.fround, fullFrom: 2 ** -126, digitsMin: 6, digitsMax: 9 };
export const float16: FloatType = { round: Math.f16round, fullFrom: 2 ** -14, digitsMin: 3, digitsMax: 5 };

/** The shortest decimal that reads back as this float: 0.1, not 0.10000000149011612. */
export function shortest(
  float: number,
  { round, fullFrom, digitsMin, digitsMax }: FloatType,
): number | undefined {
  if (!Number.isFinite(float)) return undefined;
  for (let digits = Math.abs(float) < fullFrom ? 1 : digitsMin; digits <= digitsMax; digits += 1) {
    const short = Number(float.toPrecision(digits));
    if (round(short) === float) return short;
  }
  return float;
}

export function halfOf(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getFloat16(0, true);
}

const dayMs = 86_400_000;

/** `undefined` for years outside of `Date`. */
function isoOf(ms: number): string | undefined {
  const moment = new Date(ms);
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}

export function date(days: number): string | undefined {
  return isoOf(days * dayMs)?.replace(/T.*$/, '');
}

/** `count` units of 10^-digits seconds since 1970. */
export function timestamp(count: bigint, digits: number): string | undefined {
  const unit = 10n ** BigInt(digits);
  const fraction = ((count % unit) + unit) % unit;
  const seconds = Number((count - fraction) / unit);
  return isoOf(seconds * 1000)?.replace('.000Z', `.${String(fraction).padStart(digits, '0')}Z`);
}

/** `count` units of 10^-digits seconds since midnight. */
export function time(count: bigint, digits: number): string | undefined {
  return timestamp(count, digits)?.replace(/^.*T(.*)Z$/, '$1');
}

/** Months, days and milliseconds, 32 bits each, as ISO 8601 writes a duration. */
export function interval(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [months, days, milliseconds] = [0, 4, 8].map((at) => view.getUint32(at, true));
  return `P${months}M${days}DT${milliseconds! / 1000}S`;
}

/**
 * A column of type JSON may have other text, which stays a string. An object with a name twice becomes the error that says so:
 * thrown here, it would end the reading of all rows.
 */
export function json(bytes: Uint8Array): unknown {
  const decoded = text(bytes);
  try {
    return parseGivenJson(decoded);
  } catch (error) {
    return error instanceof RepeatedNameError ? error : decoded;
  }
}
