/// <reference lib="esnext.float16" />
/**
 * Symmetric int8 per token vector: scale = largest magnitude / 127, value = round half to even(x / scale). That is the rule of
 * ONNX `QuantizeLinear`. Our own graphs apply it themselves. This code is for models that give f32 only.
 */

/**
 * Quantises f32 [rows x dim] into `vectors` int8 [rows x dim] and `scales` f32 [rows]. `mean` f32 [dim] is subtracted first if
 * it is given. A row of zeros has scale 0.
 */
export function quantizeRows(
  input: Float32Array,
  dim: number,
  mean: Float32Array | undefined,
  vectors: Int8Array,
  scales: Float32Array,
): void {
  const row = new Float32Array(dim);
  for (let r = 0; r < scales.length; r++) {
    let largest = 0;
    for (let d = 0; d < dim; d++) {
      const value = input[r * dim + d]! - (mean === undefined ? 0 : mean[d]!);
      row[d] = value;
      const magnitude = Math.abs(row[d]!);
      // This comparison makes NaN the largest. So it reaches the scale, and the receiver refuses it.
      if (!(magnitude <= largest)) largest = magnitude;
    }
    const scale = Math.fround(largest / 127);
    scales[r] = scale;
    const inverse = scale === 0 ? 0 : 1 / scale;
    for (let d = 0; d < dim; d++) {
      const value = roundHalfToEven(row[d]! * inverse);
      vectors[r * dim + d] = Math.max(-127, Math.min(127, value));
    }
  }
}

/** IEEE half bits of each value, rounded to nearest even. */
export function halfBits(values: Float32Array): Uint16Array {
  return new Uint16Array(new Float16Array(values).buffer);
}

/** Values of IEEE half bits. */
export function halfValues(bits: Uint16Array): Float16Array {
  return new Float16Array(bits.buffer, bits.byteOffset, bits.length);
}

/** Adding and subtracting 1.5 * 2^52 rounds to an integer, half to even, as the processor does. */
function roundHalfToEven(value: number): number {
  const magic = 6_755_399_441_055_744;
  return value + magic - magic;
}
