/** Token vectors as rows of numbers. */
import { rowBytes, stripCodes, type RowShape } from '../../src/contracts/row-shape.ts';

export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at]! * b[at]!;
  return sum;
}

/** The value of every f16 bit pattern. */
const halfValues: Float32Array = Float32Array.from(
  new Float16Array(Uint16Array.from({ length: 65_536 }, (_, bits) => bits).buffer),
);

/**
 * f32 [rows x dim] of what is stored, with `shift` (the centring mean, or nothing) added to each row. Rows of few bits stay
 * rotated.
 */
export function dequantised(
  { vectors, scales }: { readonly vectors: Int8Array; readonly scales: Uint16Array },
  shape: RowShape,
  shift?: Float32Array,
): Float32Array {
  const { dim } = shape;
  const values = new Float32Array(scales.length * dim);
  for (let row = 0; row < scales.length; row++) {
    const scale = halfValues[scales[row]!]!;
    for (const [d, component] of componentsOf(vectors, shape, row).entries())
      values[row * dim + d] = component * scale + (shift === undefined ? 0 : shift[d]!);
  }
  return values;
}

/** The components [dim] of stored row number `row`, by the format of native/kernels/rows.h. */
export function componentsOf(stored: Int8Array, shape: RowShape, row: number): Int8Array {
  const { dim, rowBits } = shape;
  const bytes = stored.subarray(row * rowBytes(shape), (row + 1) * rowBytes(shape));
  if (rowBits === 8) return bytes;
  const width = (stripCodes / 8) * rowBits;
  const most = 2 ** rowBits - 1;
  return Int8Array.from({ length: dim }, (_, d) => {
    const within = d % stripCodes;
    const byte = bytes[Math.floor(d / stripCodes) * width + (within % width)]! & 255;
    return 2 * ((byte >> (Math.floor(within / width) * rowBits)) & most) - most;
  });
}
