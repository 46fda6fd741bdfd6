/** The files that a graph names, wherever the tensor stands. The graphs are written here byte by byte (Protocol Buffers, ONNX). */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { graphFiles } from '../../../src/cli/models/graph-files.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
}

/** A field of bytes: a message or a string. */
function field(number: number, content: readonly number[] | string): number[] {
  const bytes = typeof content === 'string' ? [...Buffer.from(content)] : content;
  return [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes];
}

function tensor(location: string, { place = 1 } = {}): number[] {
  const entry = (key: string, value: string): number[] => field(13, [...field(1, key), ...field(2, value)]);
  // Dimensions and a name, which are passed over; then the entries and `data_location`.
  const plain = [...field(1, [2, 2]), ...field(8, 'a tensor')];
  return [...plain, ...entry('offset', '0'), ...entry('location', location), 14 * 8, place];
}

const initializer = (location: string): number[] => field(7, field(5, tensor(location)));
const attribute = (content: readonly number[]): number[] => field(7, field(1, field(5, content)));

async function filesOf(...parts: readonly (readonly number[])[]): Promise<readonly string[]> {
  const graph = path.join(await newDirectory(), 'graph.onnx');
  await writeFile(graph, Uint8Array.from(parts.flat()));
  return graphFiles(graph);
}

it.each<[string, number[]]>([
  ['an initializer', initializer('w')],
  ['a sparse initializer’s values', field(7, field(15, field(1, tensor('w'))))],
  ['a sparse initializer’s indices', field(7, field(15, field(2, tensor('w'))))],
  ['an attribute', attribute(field(5, tensor('w')))],
  ['an attribute’s list', attribute(field(10, tensor('w')))],
  ['a sparse attribute', attribute(field(22, field(1, tensor('w'))))],
  ['sparse attributes', attribute(field(23, field(1, tensor('w'))))],
  ['a graph in a node', attribute(field(6, field(5, tensor('w'))))],
  ['graphs in a node', attribute(field(11, field(1, field(5, field(5, tensor('w'))))))],
  ['a node of a function', field(25, field(7, field(5, field(5, tensor('w')))))],
  ['a default of a function', field(25, field(11, field(5, tensor('w'))))],
  ['a training graph', field(20, field(2, field(5, tensor('w'))))],
])('weights of %s', async (_, bytes) => {
  expect(await filesOf(bytes)).toEqual(['w']);
});

it('each file once, whatever its name, in folders too; none for weights in the graph', async () => {
  const names = ['model.onnx_data', 'weights/of tokens', 'onnx__MatMul_17', './weights/of tokens', '重み'];
  const graph = field(
    7,
    names.flatMap((name) => field(5, tensor(name))),
  );
  expect(await filesOf(graph)).toEqual(['model.onnx_data', 'weights/of tokens', 'onnx__MatMul_17', '重み']);
  expect(await filesOf(field(7, field(5, tensor('w', { place: 0 }))))).toEqual([]);
  expect(await filesOf()).toEqual([]);
});

it.each(['../w', 'a/../../w', 'a/..', '..', '/etc/passwd', 'C:\\w', 'c:w', '..\\w', 'a\0b', '', '.', 'a/'])(
  'a path that leads out, or to no file, is refused: %j',
  async (location) => {
    await expect(filesOf(initializer(location))).rejects.toThrow('names a file outside its directory');
  },
);

it.each<[string, number[]]>([
  ['text', [...Buffer.from('version https://git-lfs.github.com/spec/v1')]],
  ['cut off', initializer('w').slice(0, -3)],
])('what is no graph is refused: %s', async (_, bytes) => {
  await expect(filesOf(bytes)).rejects.toThrow('is not an ONNX graph');
});
