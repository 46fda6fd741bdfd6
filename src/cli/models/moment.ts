/** Fits the matrix with which codes of few bits are refined (`native/kernels/encoding/refined.h`), for `maxsimd models add`. */
import { halfBits } from '../../encoder/inference/halves.ts';
import { Rotation } from '../../encoder/inference/rows.ts';
import type { ServedModel } from '../../encoder/model/served-model.ts';
import { passageRows } from './f32-rows.ts';

/** More rows change little. */
const fitRows = 16_384;

/** u16 [dim x dim], IEEE halves: the mean of the products of each unit row of some passages with itself, rotated. */
export async function fitMoment(model: ServedModel, passages: readonly string[]): Promise<Uint16Array> {
  const { dim } = model;
  const rotation = new Rotation(dim);
  const sums = new Float64Array(dim * dim);
  let count = 0;
  for await (const rows of passageRows(model, passages)) {
    rotation.apply(rows);
    for (let from = 0; from < rows.length && count < fitRows; from += dim, count += 1)
      addProducts(sums, rows.subarray(from, from + dim));
    if (count === fitRows) break;
  }
  const moment = new Float32Array(dim * dim);
  for (let i = 0; i < dim; i += 1) {
    for (let j = 0; j < dim; j += 1)
      moment[i * dim + j] = sums[Math.max(i, j) * dim + Math.min(i, j)]! / count;
  }
  return halfBits(moment);
}

/** Adds the products of the components of a row, the lower half of a square. */
function addProducts(sums: Float64Array, row: Float32Array): void {
  for (const [i, value] of row.entries()) {
    const from = i * row.length;
    for (let j = 0; j <= i; j += 1) sums[from + j]! += value * row[j]!;
  }
}
