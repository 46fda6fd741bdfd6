/** Writing protobuf messages field by field (https://protobuf.dev/programming-guides/encoding), for ONNX files that a benchmark makes. */

/** A length-delimited field: a string, bytes or a message. */
export function delimited(number: number, contents: Buffer | string): Buffer {
  const bytes = Buffer.from(contents);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

/** A field of an integer or an enumeration. */
export function integer(number: number, value: number): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 0x80);
  return Buffer.from([...bytes, rest]);
}
