/// <reference lib="esnext.float16" />
/** IEEE half bits of each value, rounded to nearest even. */
export function halfBits(values: Float32Array): Uint16Array {
  return new Uint16Array(new Float16Array(values).buffer);
}

/** Values of IEEE half bits. */
export function halfValues(bits: Uint16Array): Float16Array {
  return new Float16Array(bits.buffer, bits.byteOffset, bits.length);
}
