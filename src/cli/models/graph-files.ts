/**
 * Reads from an ONNX graph the files in which it keeps weights (the `external_data` of all its tensors), its inputs and outputs, and
 * whether it quantises by the batch. The messages and field numbers come from `onnx.proto` (ONNX IR version 13), without fields that lead to neither.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import protobuf from 'protobufjs';
import { inputError, messageOf } from '../failure.ts';

const definition = `
  syntax = "proto2";
  message ModelProto { optional GraphProto graph = 7; repeated TrainingInfoProto training_info = 20; repeated FunctionProto functions = 25; }
  message TrainingInfoProto { optional GraphProto initialization = 1; optional GraphProto algorithm = 2; }
  message FunctionProto { repeated NodeProto node = 7; repeated AttributeProto attribute_proto = 11; }
  message GraphProto { repeated NodeProto node = 1; repeated TensorProto initializer = 5; repeated SparseTensorProto sparse_initializer = 15; repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12; }
  message ValueInfoProto { optional string name = 1; }
  message NodeProto { optional string op_type = 4; repeated AttributeProto attribute = 5; }
  message AttributeProto {
    optional TensorProto t = 5; repeated TensorProto tensors = 10; optional GraphProto g = 6; repeated GraphProto graphs = 11;
    optional SparseTensorProto sparse_tensor = 22; repeated SparseTensorProto sparse_tensors = 23;
  }
  message SparseTensorProto { optional TensorProto values = 1; optional TensorProto indices = 2; }
  message TensorProto { repeated StringStringEntryProto external_data = 13; optional int32 data_location = 14; }
  message StringStringEntryProto { optional string key = 1; optional string value = 2; }
`;
const modelProto = protobuf.parse(definition, { keepCase: true }).root.lookupType('ModelProto');
const external = 1;

interface Tensor {
  readonly external_data?: readonly { readonly key?: string; readonly value?: string }[];
  readonly data_location?: number;
}

export interface GraphNames {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

/** The names of what a graph takes and gives. Weights count as inputs in graphs of old versions. */
export async function graphNames(graph: string): Promise<GraphNames> {
  const { graph: { input = [], output = [] } = {} } = (await readGraph(graph)) as {
    readonly graph?: Readonly<Record<'input' | 'output', readonly { readonly name: string }[] | undefined>>;
  };
  const namesOf = (values: readonly { readonly name: string }[]): string[] => values.map(({ name }) => name);
  return { inputs: namesOf(input), outputs: namesOf(output) };
}

/**
 * Whether a node takes its steps from the values of a whole tensor, and so of a batch: `DynamicQuantizeLinear` of ONNX, and what
 * ONNX Runtime makes of it, such as `DynamicQuantizeMatMul`.
 */
export async function quantisesByBatch(graph: string): Promise<boolean> {
  for (const message of messagesIn(await readGraph(graph))) {
    const { op_type: operator } = message as { readonly op_type?: string };
    if (operator?.startsWith('DynamicQuantize') === true) return true;
  }
  return false;
}

/** Paths relative to the graph's directory, each once. A path that leads out of it is refused. */
export async function graphFiles(graph: string): Promise<readonly string[]> {
  const model = await readGraph(graph);
  const files = new Set<string>();
  for (const location of locationsIn(model)) {
    if (!isInside(location)) {
      const quoted = JSON.stringify(location);
      throw inputError(`${graph} names a file outside its directory: ${quoted}`);
    }
    files.add(path.posix.normalize(location));
  }
  return [...files];
}

async function readGraph(graph: string): Promise<object> {
  try {
    return modelProto.toObject(modelProto.decode(await readFile(graph)));
  } catch (error) {
    throw inputError(`${graph} is not an ONNX graph: ${messageOf(error)}`, error);
  }
}

function* locationsIn(model: object): Generator<string, void, undefined> {
  for (const message of messagesIn(model)) {
    const { external_data: entries = [], data_location: place } = message as Tensor;
    if (place === external) yield entries.find(({ key }) => key === 'location')?.value ?? '';
  }
}

/** Every message is an object and every repeated field a list, so one walk meets all of them. */
function* messagesIn(message: object): Generator<object, void, undefined> {
  yield message;
  for (const field of Object.values(message)) {
    if (typeof field === 'object') yield* messagesIn(field as object);
  }
}

/** Whether a relative path stays inside its directory, on every operating system. */
export function isInside(relative: string): boolean {
  const steps = relative.split('/');
  return !/^\/|[\\\0:]/.test(relative) && !steps.includes('..') && !['', '.'].includes(steps.at(-1)!);
}
