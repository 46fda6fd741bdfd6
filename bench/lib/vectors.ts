/** Token vectors as rows of numbers. */

export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at]! * b[at]!;
  return sum;
}

export function norm(row: Float32Array): number {
  return Math.sqrt(dot(row, row));
}

/** The value of every f16 bit pattern. */
const halfValues: Float32Array = Float32Array.from(
  new Float16Array(Uint16Array.from({ length: 65_536 }, (_, bits) => bits).buffer),
);

/** f32 [rows x dim] of what is stored with 8 bits, with `shift` (the centring mean, or nothing) added to each row. */
export function dequantised(
  { vectors, scales }: { readonly vectors: Int8Array; readonly scales: Uint16Array },
  dim: number,
  shift?: Float32Array,
): Float32Array {
  if (vectors.length !== scales.length * dim) throw new Error('these are rows of few bits');
  const values = new Float32Array(vectors.length);
  for (let row = 0; row < scales.length; row++) {
    const scale = halfValues[scales[row]!]!;
    for (let d = 0; d < dim; d++) {
      const at = row * dim + d;
      values[at] = vectors[at]! * scale + (shift === undefined ? 0 : shift[d]!);
    }
  }
  return values;
}
