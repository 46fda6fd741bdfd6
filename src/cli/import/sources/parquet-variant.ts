/**
 * Values of Parquet's type VARIANT, to the digit: a value of any JSON type, encoded as bytes
 * (https://github.com/apache/parquet-format/blob/master/VariantEncoding.md). A writer may store parts of it in typed columns
 * beside the bytes (VariantShredding.md). hyparquet takes such a column of bytes for encoded values, and loses digits of
 * decimals and the unit of times. So it reads the columns as they are stored, and they are put together here.
 */
import type { SchemaTree } from 'hyparquet';
import { isObject } from '../../json.ts';
import { isList } from './parquet-schema.ts';
import {
  date,
  decimal,
  float32,
  integerOf,
  plain,
  shortest,
  text,
  time,
  timestamp,
} from './parquet-values.ts';

type Convert = (value: unknown) => unknown;
/** `undefined` = no value, in contrast to null. */
type ReadPart = (stored: unknown, names: readonly string[]) => unknown;

/** `leaf` converts a typed column. The conversion throws if the bytes are damaged, or have a type that is not known. */
export function variantConverter(node: SchemaTree, leaf: (node: SchemaTree) => Convert): Convert {
  const read = groupReader(node, leaf);
  return (group) => {
    const metadata = isObject(group) ? group['metadata'] : undefined;
    return metadata instanceof Uint8Array ? read(group, namesIn(metadata)) : undefined;
  };
}

/** A group has encoded bytes in `value`, a typed column in `typed_value`, or the members of an object in both. */
function groupReader({ children }: SchemaTree, leaf: (node: SchemaTree) => Convert): ReadPart {
  const typed = children.find(({ element }) => element.name === 'typed_value');
  const readTyped = typed === undefined ? undefined : typedReader(typed, leaf);
  return (group, names) => {
    const { value, typed_value: stored } = isObject(group) ? group : {};
    const encoded = value instanceof Uint8Array ? valueAt(viewOf(value), 0, names) : undefined;
    if (stored === null || stored === undefined) return encoded;
    const found = readTyped?.(stored, names);
    return isObject(found) && isObject(encoded) ? { ...encoded, ...found } : found;
  };
}

function typedReader(node: SchemaTree, leaf: (node: SchemaTree) => Convert): ReadPart {
  const [first] = node.children;
  if (first === undefined) return leaf(node);
  if (isList(node)) {
    const read = groupReader(first.children[0] ?? first, leaf);
    return (list, names) => (list as readonly unknown[]).map((item) => read(item, names) ?? null);
  }
  const fields = node.children.map((child) => [child.element.name, groupReader(child, leaf)] as const);
  return (struct, names) => {
    const members = fields.map(([name, read]) => [
      name,
      read((struct as Record<string, unknown>)[name], names),
    ]);
    return Object.fromEntries(members.filter(([, value]) => value !== undefined));
  };
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function bytesAt(view: DataView, at: number, length: number): Uint8Array {
  if (at + length > view.byteLength) throw new RangeError('a VARIANT ends early');
  return new Uint8Array(view.buffer, view.byteOffset + at, length);
}

function unsignedAt(view: DataView, at: number, width: number): number {
  return bytesAt(view, at, width).reduceRight((sum, byte) => sum * 256 + byte, 0);
}

function unsignedsAt(view: DataView, at: number, width: number, count: number): readonly number[] {
  bytesAt(view, at, width * count);
  return Array.from({ length: count }, (_, place) => unsignedAt(view, at + place * width, width));
}

/** The names of all members of objects. */
function namesIn(metadata: Uint8Array): readonly string[] {
  const view = viewOf(metadata);
  const header = view.getUint8(0);
  if ((header & 0x0f) !== 1) throw new RangeError(`VARIANT of version ${header & 0x0f}`);
  const width = (header >> 6) + 1;
  const count = unsignedAt(view, 1, width);
  const offsets = unsignedsAt(view, 1 + width, width, count + 1);
  const start = 1 + width * (count + 2);
  return offsets
    .slice(1)
    .map((end, place) => text(bytesAt(view, start + offsets[place]!, end - offsets[place]!)));
}

function valueAt(view: DataView, at: number, names: readonly string[]): unknown {
  const first = view.getUint8(at);
  const header = first >> 2;
  const kind = first & 3;
  if (kind === 0) return primitiveAt(view, at + 1, header);
  if (kind === 1) return text(bytesAt(view, at + 1, header));
  const isObjectValue = kind === 2;
  const offsetWidth = (header & 3) + 1;
  const idWidth = isObjectValue ? ((header >> 2) & 3) + 1 : 0;
  const countWidth = (header >> (isObjectValue ? 4 : 2)) & 1 ? 4 : 1;
  const count = unsignedAt(view, at + 1, countWidth);
  const idsAt = at + 1 + countWidth;
  const offsetsAt = idsAt + idWidth * count;
  const offsets = unsignedsAt(view, offsetsAt, offsetWidth, count + 1);
  const start = offsetsAt + offsetWidth * (count + 1);
  const values = offsets.slice(0, -1).map((offset) => valueAt(view, start + offset, names));
  if (!isObjectValue) return values.map((value) => value ?? null);
  const ids = unsignedsAt(view, idsAt, idWidth, count);
  const members = values.map((value, place) => [names[ids[place]!], value]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** By the number of the type. */
const primitives: Readonly<Record<number, (view: DataView, at: number) => unknown>> = {
  0: () => null,
  1: () => true,
  2: () => false,
  3: (view, at) => view.getInt8(at),
  4: (view, at) => view.getInt16(at, true),
  5: (view, at) => view.getInt32(at, true),
  6: (view, at) => plain(view.getBigInt64(at, true)),
  7: (view, at) => plain(view.getFloat64(at, true)),
  8: (view, at) => decimalAt(view, at, 4),
  9: (view, at) => decimalAt(view, at, 8),
  10: (view, at) => decimalAt(view, at, 16),
  11: (view, at) => date(view.getInt32(at, true)),
  12: (view, at) => timestamp(view.getBigInt64(at, true), 6),
  13: (view, at) => timestamp(view.getBigInt64(at, true), 6),
  14: (view, at) => shortest(view.getFloat32(at, true), float32),
  15: (view, at) => plain(sizedAt(view, at)),
  16: (view, at) => text(sizedAt(view, at)),
  17: (view, at) => time(view.getBigInt64(at, true), 6),
  18: (view, at) => timestamp(view.getBigInt64(at, true), 9),
  19: (view, at) => timestamp(view.getBigInt64(at, true), 9),
  20: (view, at) => uuid(bytesAt(view, at, 16)),
};

function primitiveAt(view: DataView, at: number, type: number): unknown {
  const read = primitives[type];
  if (read === undefined) throw new RangeError(`VARIANT with the type ${type}, which is not known`);
  return read(view, at);
}

function sizedAt(view: DataView, at: number): Uint8Array {
  return bytesAt(view, at + 4, view.getUint32(at, true));
}

function decimalAt(view: DataView, at: number, width: number): unknown {
  return decimal(integerOf(bytesAt(view, at + 1, width).toReversed()), view.getUint8(at));
}

function uuid(bytes: Uint8Array): string {
  return Buffer.from(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
