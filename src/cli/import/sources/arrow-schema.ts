/**
 * Finds integers of 128 bits in a Parquet file. Parquet has no such type: polars stores bytes, and says in `ARROW:schema`
 * what they are. That is a schema of Arrow, a FlatBuffer (https://flatbuffers.dev/internals) whose tables have numbered slots
 * (Message.fbs and Schema.fbs of Arrow). Arrow and Parquet have the same leaves in the same order.
 */
import type { FileMetaData, SchemaElement, SchemaTree } from 'hyparquet';

/** Message of Arrow -> its schema. */
const headerSlot = 2;
const schemaSlots = { fields: 1 };
const fieldSlots = { typeKind: 2, type: 3, children: 5 };
const integerKind = 2;
const integerSlots = { bitWidth: 0, isSigned: 1 };

/** The metadata, with a type for columns of such integers. `tree` is its schema. */
export function withWideIntegers(metadata: FileMetaData, tree: SchemaTree): FileMetaData {
  const found = metadata.key_value_metadata?.find(({ key }) => key === 'ARROW:schema')?.value;
  const leaves = leavesOf(tree);
  const types = found === undefined ? [] : integersIn(Buffer.from(found, 'base64'));
  if (types.length !== leaves.length) return metadata;
  const wide = new Map<SchemaElement, SchemaElement['logical_type']>();
  for (const [place, element] of leaves.entries()) {
    const { bitWidth, isSigned } = types[place]!;
    if (bitWidth === 128 && element.type === 'FIXED_LEN_BYTE_ARRAY' && element.type_length === 16)
      wide.set(element, { type: 'INTEGER', bitWidth, isSigned });
  }
  const schema = metadata.schema.map((element) => {
    const type = wide.get(element);
    return type === undefined ? element : { ...element, logical_type: type };
  });
  return { ...metadata, schema };
}

function leavesOf({ element, children }: SchemaTree): readonly SchemaElement[] {
  return children.length === 0 ? [element] : children.flatMap(leavesOf);
}

interface IntegerType {
  /** 0 = no integer. */
  readonly bitWidth: number;
  readonly isSigned: boolean;
}

/** The types of the leaves. None if the schema cannot be read. */
function integersIn(bytes: Buffer): readonly IntegerType[] {
  try {
    // Since Arrow 0.15 a marker stands before the length of the message.
    const start = bytes.readUInt32LE(0) === 0xffff_ffff ? 8 : 4;
    const schema = new Table(bytes, start + bytes.readUInt32LE(start)).table(headerSlot);
    return schema?.tables(schemaSlots.fields).flatMap(leafTypes) ?? [];
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}

function leafTypes(field: Table): readonly IntegerType[] {
  const children = field.tables(fieldSlots.children);
  if (children.length > 0) return children.flatMap(leafTypes);
  const type = field.byte(fieldSlots.typeKind) === integerKind ? field.table(fieldSlots.type) : undefined;
  return [
    {
      bitWidth: type?.integer(integerSlots.bitWidth) ?? 0,
      isSigned: type?.byte(integerSlots.isSigned) === 1,
    },
  ];
}

/** A table of a FlatBuffer. A slot that is not there is 0, empty or `undefined`. */
class Table {
  readonly #bytes: Buffer;
  readonly #at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  byte(slot: number): number {
    const at = this.#placeOf(slot);
    return at === undefined ? 0 : this.#bytes.readUInt8(at);
  }

  integer(slot: number): number {
    const at = this.#placeOf(slot);
    return at === undefined ? 0 : this.#bytes.readInt32LE(at);
  }

  table(slot: number): Table | undefined {
    const at = this.#placeOf(slot);
    return at === undefined ? undefined : new Table(this.#bytes, this.#targetOf(at));
  }

  tables(slot: number): readonly Table[] {
    const at = this.#placeOf(slot);
    if (at === undefined) return [];
    const vector = this.#targetOf(at);
    const count = this.#bytes.readUInt32LE(vector);
    const tables: Table[] = [];
    for (let item = 1; item <= count; item += 1)
      tables.push(new Table(this.#bytes, this.#targetOf(vector + 4 * item)));
    return tables;
  }

  #targetOf(at: number): number {
    return at + this.#bytes.readUInt32LE(at);
  }

  #placeOf(slot: number): number | undefined {
    const vtable = this.#at - this.#bytes.readInt32LE(this.#at);
    const entry = 4 + 2 * slot;
    const offset = entry < this.#bytes.readUInt16LE(vtable) ? this.#bytes.readUInt16LE(vtable + entry) : 0;
    return offset === 0 ? undefined : this.#at + offset;
  }
}
