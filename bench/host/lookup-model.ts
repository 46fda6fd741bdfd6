/**
 * A model that costs next to nothing: a token's vector is looked up in a table of random unit vectors. Tokenizer,
 * shapes, outputs and everything around the model are those of the model it is made after, so what a service with it
 * costs is what it costs beside the model.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openModelDirectory } from '../../src/encoder/model/model-directory.ts';
import { delimited, integerField } from '../lib/model/protobuf.ts';
import { seededRandom } from '../lib/seeded-random.ts';

/** As models are named in a configuration. */
export const lookupModel = 'lookup/1';

/** Numbers of onnx.proto (TensorProto.DataType). */
const float32 = 1;
const int8 = 3;
const int64 = 7;
/** The oldest that has all operators below as they are used. */
const operatorSet = 13;
const irVersion = 7;
const inputs = ['input_ids', 'attention_mask'];

/** Writes a directory of models with this one, made after the one in `source`. */
export async function writeLookupModel(source: string, models: string): Promise<void> {
  const { config } = await openModelDirectory(source);
  const { maxsimd } = config;
  if (maxsimd?.int8_output === undefined || maxsimd.scale_output === undefined || config.uses_token_type_ids)
    throw new Error(`${source}: a model with int8 rows and without token types is needed`);
  const directory = path.join(models, lookupModel);
  await mkdir(directory, { recursive: true });
  const tokenizer = await readFile(path.join(source, 'tokenizer.json'), 'utf8');
  await writeFile(path.join(directory, 'tokenizer.json'), tokenizer);
  await writeFile(path.join(directory, 'onnx_config.json'), JSON.stringify(config));
  const { vocab } = (JSON.parse(tokenizer) as { readonly model: { readonly vocab: object } }).model;
  const graph = lookupGraph({
    vectors: Object.keys(vocab).length,
    dim: config.embedding_dim,
    int8Output: maxsimd.int8_output,
    scaleOutput: maxsimd.scale_output,
    tokenWeightOutput: maxsimd.token_weight_output,
  });
  await writeFile(path.join(directory, 'model.onnx'), graph);
}

interface LookupShape {
  readonly vectors: number;
  readonly dim: number;
  readonly int8Output: string;
  readonly scaleOutput: string;
  readonly tokenWeightOutput: string | undefined;
}

function lookupGraph({ vectors, dim, int8Output, scaleOutput, tokenWeightOutput }: LookupShape): Buffer {
  const { rows, scales } = randomTable(vectors, dim);
  const graph = [
    node('Gather', ['rows', 'input_ids'], int8Output),
    node('Gather', ['scales', 'input_ids'], scaleOutput),
    node('Cast', [int8Output], 'steps', [attribute('to', float32)]),
    node('Unsqueeze', [scaleOutput, 'last'], 'step'),
    node('Mul', ['steps', 'step'], 'output'),
    delimited(2, 'lookup'),
    tensor('rows', int8, [vectors, dim], rows),
    tensor('scales', float32, [vectors], scales),
    tensor('last', int64, [1], BigInt64Array.of(-1n)),
    ...inputs.map((name) => value(11, name, int64, ['batch', 'tokens'])),
    value(12, 'output', float32, ['batch', 'tokens', dim]),
    value(12, int8Output, int8, ['batch', 'tokens', dim]),
    value(12, scaleOutput, float32, ['batch', 'tokens']),
  ];
  if (tokenWeightOutput !== undefined) {
    graph.push(
      node('Gather', ['weights', 'input_ids'], tokenWeightOutput),
      tensor('weights', float32, [vectors], new Float32Array(vectors).fill(1)),
      value(12, tokenWeightOutput, float32, ['batch', 'tokens']),
    );
  }
  return Buffer.concat([
    integerField(1, irVersion),
    delimited(8, integerField(2, operatorSet)),
    delimited(7, Buffer.concat(graph)),
  ]);
}

/** Unit vectors as int8 rows with a scale each: value = row * scale. */
function randomTable(vectors: number, dim: number): { rows: Int8Array; scales: Float32Array } {
  const random = seededRandom(1);
  const rows = new Int8Array(vectors * dim);
  const scales = new Float32Array(vectors);
  const vector = new Float64Array(dim);
  for (let at = 0; at < vectors; at++) {
    // The sum of three is near enough to a normal distribution for directions without a preference.
    for (let d = 0; d < dim; d++) vector[d] = random() + random() + random() - 1.5;
    const largest = vector.reduce((found, each) => Math.max(found, Math.abs(each)), 0);
    scales[at] = largest / 127 / Math.hypot(...vector);
    for (let d = 0; d < dim; d++) rows[at * dim + d] = Math.round((127 * vector[d]!) / largest);
  }
  return { rows, scales };
}

/** Field numbers of onnx.proto from here on: a NodeProto in a GraphProto. */
function node(
  operator: string,
  from: readonly string[],
  to: string,
  attributes: readonly Buffer[] = [],
): Buffer {
  const parts = [...from.map((name) => delimited(1, name)), delimited(2, to), delimited(4, operator)];
  return delimited(1, Buffer.concat([...parts, ...attributes]));
}

/** AttributeProto: an integer. */
function attribute(name: string, integer: number): Buffer {
  const integerType = 2;
  return delimited(
    5,
    Buffer.concat([delimited(1, name), integerField(3, integer), integerField(20, integerType)]),
  );
}

/** TensorProto, an initializer of the graph. */
function tensor(
  name: string,
  type: number,
  shape: readonly number[],
  data: Int8Array | Float32Array | BigInt64Array,
): Buffer {
  return delimited(
    5,
    Buffer.concat([
      ...shape.map((size) => integerField(1, size)),
      integerField(2, type),
      delimited(8, name),
      delimited(9, Buffer.from(data.buffer, data.byteOffset, data.byteLength)),
    ]),
  );
}

/** ValueInfoProto, an input (11) or output (12) of the graph. */
function value(field: 11 | 12, name: string, type: number, shape: readonly (number | string)[]): Buffer {
  const dimensions = shape.map((size) =>
    delimited(1, typeof size === 'number' ? integerField(1, size) : delimited(2, size)),
  );
  const tensorType = Buffer.concat([integerField(1, type), delimited(2, Buffer.concat(dimensions))]);
  return delimited(field, Buffer.concat([delimited(1, name), delimited(2, delimited(1, tensorType))]));
}
