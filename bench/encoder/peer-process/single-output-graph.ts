/**
 * Rewrites an ONNX file so that it gives one output under another name. Some libraries expect fixed names of outputs. The
 * runtime then drops the nodes that only the other outputs needed. This works on the protobuf wire format
 * (onnx.proto: ModelProto.graph = 7; GraphProto.node = 1, output = 12; NodeProto.input = 1, output = 2, op_type = 4;
 * ValueInfoProto.name = 1), so nothing else of the file changes.
 */

const field = {
  modelGraph: 7,
  graphNode: 1,
  graphOutput: 12,
  nodeInput: 1,
  nodeOutput: 2,
  nodeType: 4,
  valueName: 1,
};

interface Field {
  readonly number: number;
  /** Tag and length included. */
  readonly whole: Buffer;
  /** Contents of a length-delimited field, otherwise empty. */
  readonly contents: Buffer;
}

/** The model with `output` alone, called `name`; throws when there is no such output. */
export function withSingleOutput(model: Buffer, output: string, name: string): Buffer {
  return Buffer.concat(
    fieldsOf(model).map(({ number, whole, contents }) =>
      number === field.modelGraph
        ? delimited(field.modelGraph, graphWithSingleOutput(contents, output, name))
        : whole,
    ),
  );
}

function graphWithSingleOutput(graph: Buffer, output: string, name: string): Buffer {
  const fields = fieldsOf(graph);
  const kept = fields.find(
    ({ number, contents }) => number === field.graphOutput && nameOf(contents) === output,
  );
  if (kept === undefined) throw new Error(`the graph has no output ${output}`);
  const value = fieldsOf(kept.contents).filter(({ number }) => number !== field.valueName);
  const identity = [
    delimited(field.nodeInput, Buffer.from(output)),
    delimited(field.nodeOutput, Buffer.from(name)),
    delimited(field.nodeType, Buffer.from('Identity')),
  ];
  return Buffer.concat([
    ...fields.filter(({ number }) => number !== field.graphOutput).map(({ whole }) => whole),
    delimited(field.graphNode, Buffer.concat(identity)),
    delimited(
      field.graphOutput,
      Buffer.concat([delimited(field.valueName, Buffer.from(name)), ...value.map(({ whole }) => whole)]),
    ),
  ]);
}

function nameOf(valueInfo: Buffer): string | undefined {
  return fieldsOf(valueInfo)
    .find(({ number }) => number === field.valueName)
    ?.contents.toString();
}

function fieldsOf(message: Buffer): readonly Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < message.length;) {
    const start = at;
    const tag = readVarint(message, at);
    at = tag.end;
    const wireType = tag.value & 7;
    let contents = message.subarray(0, 0);
    if (wireType === 0) at = readVarint(message, at).end;
    else if (wireType === 1) at += 8;
    else if (wireType === 5) at += 4;
    else if (wireType === 2) {
      const length = readVarint(message, at);
      at = length.end + length.value;
      contents = message.subarray(length.end, at);
    } else throw new Error(`not a protobuf message: wire type ${wireType}`);
    fields.push({ number: tag.value >>> 3, whole: message.subarray(start, at), contents });
  }
  return fields;
}

/** Values above 2^53 lose digits; tags and lengths are far below. */
function readVarint(bytes: Buffer, start: number): { readonly value: number; readonly end: number } {
  let value = 0;
  let scale = 1;
  for (let at = start; ; at++) {
    const byte = bytes.readUInt8(at);
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return { value, end: at + 1 };
    scale *= 128;
  }
}

/** A length-delimited field: a string, bytes or a message. */
function delimited(number: number, contents: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(contents.length), contents]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 0x80);
  return Buffer.from([...bytes, rest]);
}
