/**
 * A model whose network costs next to nothing, so that a benchmark loads the processes around it. Tokenizer, rules and shape of the
 * rows are those of a given model. Each token gets a row of a small table, which a seed draws.
 *
 * The graph is an ONNX file (onnx.proto). The numbers of its fields stand beside their names below.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { seededRandom } from '../seeded-random.ts';
import { delimited, integer } from './protobuf.ts';

interface OnnxConfig {
  readonly embedding_dim: number;
  readonly maxsimd?: Readonly<Record<string, unknown>>;
}

const tableRows = 1021;
const elementType = { float: 1, int64: 7 };

/** Writes `FOLDER/trivial/1` and returns the settings of a service that serves it. */
export function makeTrivialModel(folder: string, like: string): Readonly<Record<string, string>> {
  const directory = path.join(folder, 'trivial', '1');
  mkdirSync(directory, { recursive: true });
  copyFileSync(path.join(like, 'tokenizer.json'), path.join(directory, 'tokenizer.json'));
  const config = JSON.parse(readFileSync(path.join(like, 'onnx_config.json'), 'utf8')) as OnnxConfig;
  // The graph gives f32 rows alone.
  const { int8_output: _, scale_output: __, ...maxsimd } = config.maxsimd ?? {};
  const own = { ...config, uses_token_type_ids: false, maxsimd };
  writeFileSync(path.join(directory, 'onnx_config.json'), JSON.stringify(own));
  const weights = maxsimd['token_weight_output'];
  writeFileSync(
    path.join(directory, 'model.onnx'),
    modelOf(config.embedding_dim, typeof weights === 'string' ? weights : 'weights'),
  );
  return { MAXSIMD_MODELS_DIR: folder, MAXSIMD_MODEL: 'trivial/1' };
}

/** ModelProto: ir_version 1, graph 7, opset_import 8. */
function modelOf(dim: number, weightsOutput: string): Buffer {
  return Buffer.concat([
    integer(1, 9),
    delimited(7, graphOf(dim, weightsOutput)),
    delimited(8, integer(2, 17)),
  ]);
}

/** GraphProto: node 1, name 2, initializer 5, input 11, output 12. */
function graphOf(dim: number, weightsOutput: string): Buffer {
  const nodes = [
    nodeOf('Mod', ['input_ids', 'rows'], 'place'),
    nodeOf('Gather', ['table', 'place'], 'output'),
    // AttributeProto: name 1, i 3, type 20.
    nodeOf('Cast', ['attention_mask'], weightsOutput, [
      delimited(1, 'to'),
      integer(3, elementType.float),
      integer(20, 2),
    ]),
  ];
  const rows = Buffer.from(new BigInt64Array([BigInt(tableRows)]).buffer);
  return Buffer.concat([
    ...nodes.map((node) => delimited(1, node)),
    delimited(2, 'trivial'),
    delimited(5, tensorOf('rows', elementType.int64, [], rows)),
    delimited(5, tensorOf('table', elementType.float, [tableRows, dim], tableOf(dim))),
    ...['input_ids', 'attention_mask'].map((name) => delimited(11, valueOf(name, elementType.int64))),
    delimited(12, valueOf('output', elementType.float, dim)),
    delimited(12, valueOf(weightsOutput, elementType.float)),
  ]);
}

/** Unit vectors. */
function tableOf(dim: number): Buffer {
  const random = seededRandom(1);
  const table = new Float32Array(tableRows * dim);
  for (let from = 0; from < table.length; from += dim) {
    const row = table.subarray(from, from + dim).map(() => random() - 0.5);
    const norm = Math.hypot(...row);
    table.set(
      row.map((value) => value / norm),
      from,
    );
  }
  return Buffer.from(table.buffer);
}

/** NodeProto: input 1, output 2, op_type 4, attribute 5. */
function nodeOf(
  type: string,
  inputs: readonly string[],
  output: string,
  attribute?: readonly Buffer[],
): Buffer {
  return Buffer.concat([
    ...inputs.map((name) => delimited(1, name)),
    delimited(2, output),
    delimited(4, type),
    ...(attribute === undefined ? [] : [delimited(5, Buffer.concat(attribute))]),
  ]);
}

/** TensorProto: dims 1, data_type 2, name 8, raw_data 9. */
function tensorOf(name: string, type: number, dims: readonly number[], data: Buffer): Buffer {
  return Buffer.concat([
    ...dims.map((size) => integer(1, size)),
    integer(2, type),
    delimited(8, name),
    delimited(9, data),
  ]);
}

/** ValueInfoProto: name 1, type 2. TypeProto.Tensor: elem_type 1, shape 2. A dimension: dim_value 1, dim_param 2. */
function valueOf(name: string, type: number, dim?: number): Buffer {
  const dimensions = [
    delimited(2, 'batch'),
    delimited(2, 'tokens'),
    ...(dim === undefined ? [] : [integer(1, dim)]),
  ];
  const shape = Buffer.concat(dimensions.map((dimension) => delimited(1, dimension)));
  const tensor = Buffer.concat([integer(1, type), delimited(2, shape)]);
  return Buffer.concat([delimited(1, name), delimited(2, delimited(1, tensor))]);
}
