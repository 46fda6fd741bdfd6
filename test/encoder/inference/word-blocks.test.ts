/**
 * The operator that reads a table of words in 4 bits (`GatherBlockQuantized`) on the CPU of this platform.
 * `test/fixtures/word-blocks/generate.py` makes the graph and says what the table holds.
 */
import path from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { expect, it } from 'vitest';

const file = path.resolve(import.meta.dirname, '../../fixtures/word-blocks/model.onnx');
const [rows, columns, block] = [6, 64, 32];

const element = (row: number, column: number): number =>
  (((7 * row + 3 * column) % 16) - 8) * ((1 + Math.floor(column / block)) / 2 ** (row % 3));

it.each(['all', 'disabled'] as const)('gives the rows of words, with optimisations: %s', async (level) => {
  const session = await InferenceSession.create(file, {
    executionProviders: ['cpu'],
    graphOptimizationLevel: level,
  });
  const ids = [...Array(rows).keys(), 0, rows - 1].toReversed();
  const input = new Tensor('int64', BigInt64Array.from(ids, BigInt), [2, ids.length / 2]);
  const { rows: found } = await session.run({ input_ids: input });
  expect(found!.dims).toEqual([2, ids.length / 2, columns]);
  expect(Array.from(found!.data as Float32Array)).toEqual(
    ids.flatMap((row) => Array.from({ length: columns }, (_, column) => element(row, column))),
  );
  await session.release();
});
