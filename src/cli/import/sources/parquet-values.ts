/**
 * Values of a Parquet file as JSON has them, with all their digits. hyparquet hands most types to `parsers`. Decimals,
 * times and intervals it reads as numbers that lose digits or their unit, so their annotations are hidden from it, and the
 * values that it then gives out as they are stored are converted by the schema.
 *
 * Timestamps become ISO 8601 with the digits of their unit, so that their strings have one order; dates are days, without
 * a time. NaN and the infinities are
 * no JSON: they are fields that are not there, or null within a list.
 */
import { isUtf8 } from 'node:buffer';
import {
  parquetSchema,
  type FileMetaData,
  type ParquetParsers,
  type SchemaElement,
  type SchemaTree,
} from 'hyparquet';
import { isObject, parseJson } from '../../json.ts';

/** A leading U+FEFF belongs to the value. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export const parsers: Partial<ParquetParsers> = {
  timestampFromMilliseconds: (milliseconds) => timestamp(BigInt(milliseconds), 3),
  timestampFromMicroseconds: (microseconds) => timestamp(microseconds, 6),
  timestampFromNanoseconds: (nanoseconds) => timestamp(nanoseconds, 9),
  dateFromDays: date,
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && decoder.decode(bytes),
  jsonFromBytes: (bytes: Uint8Array | undefined) => bytes && jsonOr(decoder.decode(bytes)),
};

type Convert = (value: unknown) => unknown;

/** The file as hyparquet is to read it, and what the values of its columns become. */
export function withoutHidden(metadata: FileMetaData): {
  readonly metadata: FileMetaData;
  readonly convert: Readonly<Record<string, Convert>>;
} {
  const { children } = parquetSchema(metadata);
  const hidden = new Set(children.flatMap(hiddenIn));
  const schema = metadata.schema.map((element) =>
    hidden.has(element) ? withoutAnnotation(element) : element,
  );
  return {
    metadata: { ...metadata, schema },
    convert: Object.fromEntries(children.map((column) => [column.element.name, converterOf(column)])),
  };
}

/** Not those of keys of maps, which become names, nor of what hyparquet puts together itself. */
function hiddenIn(node: SchemaTree): readonly SchemaElement[] {
  const { element, children } = node;
  if (isVariant(element)) return [];
  if (children.length === 0) return storedConverter(element) === undefined ? [] : [element];
  if (isMap(node)) return hiddenIn(children[0]!.children[1]!);
  return children.flatMap(hiddenIn);
}

function withoutAnnotation(element: SchemaElement): SchemaElement {
  const { converted_type: _converted, logical_type: _logical, ...stored } = element;
  return stored;
}

function isVariant({ logical_type: logical }: SchemaElement): boolean {
  return logical?.type === 'VARIANT';
}

function isList({ element, children }: SchemaTree): boolean {
  return element.converted_type === 'LIST' && children.length === 1 && children[0]!.children.length <= 1;
}

function isMap({ element, children }: SchemaTree): boolean {
  return element.converted_type === 'MAP' && children.length === 1 && children[0]!.children.length === 2;
}

function converterOf(node: SchemaTree): Convert {
  const own = ownConverter(node);
  return node.element.repetition_type === 'REPEATED' ? items(own) : own;
}

function ownConverter(node: SchemaTree): Convert {
  const { element, children } = node;
  const [first] = children;
  if (isVariant(element)) return plain;
  if (first === undefined) return storedConverter(element) ?? plain;
  if (isList(node))
    return items(first.children.length === 0 ? ownConverter(first) : converterOf(first.children[0]!));
  if (isMap(node)) {
    const value = converterOf(first.children[1]!);
    return (map) => members(map, () => value);
  }
  const fields = new Map(children.map((child) => [child.element.name, converterOf(child)]));
  return (struct) => members(struct, (name) => fields.get(name) ?? plain);
}

function items(convert: Convert): Convert {
  return (list) => (Array.isArray(list) ? list.map(convert) : plain(list));
}

function members(object: unknown, convertOf: (name: string) => Convert): unknown {
  if (!isObject(object)) return plain(object);
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, convertOf(name)(value)]));
}

/** For types whose values hyparquet gives out as they are stored. */
function storedConverter(element: SchemaElement): Convert | undefined {
  const { type, converted_type: converted, logical_type: logical } = element;
  if (converted === 'DECIMAL' || logical?.type === 'DECIMAL') {
    const scale = element.scale ?? 0;
    return given((value) => decimal(integerOf(value), scale));
  }
  if (converted === 'TIME_MILLIS') return given((value) => time(integerOf(value), 3));
  if (converted === 'TIME_MICROS') return given((value) => time(integerOf(value), 6));
  if (logical?.type === 'TIME') {
    const digits = { MILLIS: 3, MICROS: 6, NANOS: 9 }[logical.unit];
    return given((value) => time(integerOf(value), digits));
  }
  if (converted === 'INTERVAL') return given((value) => interval(value as Uint8Array));
  if (type === 'FLOAT') return given((value) => shortest(value as number));
  return undefined;
}

function given(convert: Convert): Convert {
  return (value) => (value === undefined || value === null ? value : convert(value));
}

/** What has no annotation that concerns us. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return parseJson(String(value));
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (value instanceof Uint8Array)
    return isUtf8(value) ? decoder.decode(value) : Buffer.from(value).toString('base64');
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, plain(inner)]));
}

/** Bytes are two's complement, the first one highest. */
function integerOf(value: unknown): bigint {
  if (!(value instanceof Uint8Array)) return BigInt(value as number | bigint);
  const unsigned = value.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  return BigInt.asIntN(value.length * 8, unsigned);
}

function decimal(unscaled: bigint, scale: number): unknown {
  const sign = unscaled < 0n ? '-' : '';
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
  const point = digits.length - scale;
  return parseJson(
    scale === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`,
  );
}

/** The decimal with fewest digits that is this float: 0.1, not 0.10000000149011612. */
function shortest(float: number): number | undefined {
  if (!Number.isFinite(float)) return undefined;
  const texts = [6, 7, 8, 9].map((digits) => Number(float.toPrecision(digits)));
  return texts.find((number) => Math.fround(number) === float) ?? float;
}

const dayMs = 86_400_000;

/** Years that a `Date` does not reach are left out. */
function isoOf(ms: number): string | undefined {
  const moment = new Date(ms);
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}

function date(days: number): string | undefined {
  return isoOf(days * dayMs)?.replace(/T.*$/, '');
}

/** `count` units of 10^-digits seconds since 1970. */
function timestamp(count: bigint, digits: number): string | undefined {
  const unit = 10n ** BigInt(digits);
  const fraction = ((count % unit) + unit) % unit;
  const seconds = Number((count - fraction) / unit);
  return isoOf(seconds * 1000)?.replace('.000Z', `.${String(fraction).padStart(digits, '0')}Z`);
}

/** `count` units of 10^-digits seconds since midnight. */
function time(count: bigint, digits: number): string | undefined {
  return timestamp(count, digits)?.replace(/^.*T(.*)Z$/, '$1');
}

/** Months, days and milliseconds, 32 bits each, as ISO 8601 writes a duration. */
function interval(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [months, days, milliseconds] = [0, 4, 8].map((at) => view.getUint32(at, true));
  return `P${months}M${days}DT${milliseconds! / 1000}S`;
}

/** A column of JSON may hold text that is none. */
function jsonOr(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
