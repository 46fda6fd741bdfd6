/** Fits what rows of few bits need on the rows of some passages, for `maxsimd models add`. */
import { halfBits } from '../../encoder/inference/halves.ts';
import { Rotation } from '../../encoder/inference/rows.ts';
import type { ServedModel } from '../../encoder/model/served-model.ts';
import { passageRows } from './f32-rows.ts';

/** More rows change little. */
const rowsMax = 16_384;

export interface Fitted {
  /** [dim]: the mean of the rows, which documents have subtracted. */
  readonly mean: readonly number[];
  /**
   * u16 [dim x dim], IEEE halves: the mean of the products of each rotated row with itself, with which codes are refined
   * (`native/kernels/encoding/refined.h`).
   */
  readonly moment: Uint16Array;
}

export async function fitRows(model: ServedModel, passages: readonly string[]): Promise<Fitted> {
  const { dim } = model;
  const rotation = new Rotation(dim);
  const sum = new Float64Array(dim);
  const products = new Float64Array(dim * dim);
  let count = 0;
  for await (const rows of passageRows(model, passages)) {
    const left = Math.min(rows.length / dim, rowsMax - count);
    for (let at = 0; at < left * dim; at += 1) sum[at % dim]! += rows[at]!;
    rotation.apply(rows);
    for (let from = 0; from < left * dim; from += dim) addProducts(products, rows.subarray(from, from + dim));
    count += left;
    if (count === rowsMax) break;
  }
  const moment = new Float32Array(dim * dim);
  for (let i = 0; i < dim; i += 1) {
    for (let j = 0; j < dim; j += 1)
      moment[i * dim + j] = products[Math.max(i, j) * dim + Math.min(i, j)]! / count;
  }
  return { mean: Array.from(sum, (value) => Number((value / count).toFixed(5))), moment: halfBits(moment) };
}

/** Adds the products of the components of a row, the lower half of a square. */
function addProducts(sums: Float64Array, row: Float32Array): void {
  for (const [i, value] of row.entries()) {
    const from = i * row.length;
    for (let j = 0; j <= i; j += 1) sums[from + j]! += value * row[j]!;
  }
}
