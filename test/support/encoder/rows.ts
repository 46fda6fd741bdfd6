/** Reads stored token vectors, by the format of native/kernels/rows.h. */
import { rowBytes, stripCodes, type RowShape } from '../../../src/row-shape.ts';

/** The components [dim] of row number `row`. */
export function componentsOf(stored: Int8Array, shape: RowShape, row: number): number[] {
  const { dim, rowBits } = shape;
  const bytes = stored.subarray(row * rowBytes(shape), (row + 1) * rowBytes(shape));
  if (rowBits === 8) return [...bytes];
  const width = (stripCodes / 8) * rowBits;
  return Array.from({ length: dim }, (_, d) => {
    const within = d % stripCodes;
    const byte = bytes[Math.floor(d / stripCodes) * width + (within % width)]! & 255;
    return 2 * ((byte >> (Math.floor(within / width) * rowBits)) & (2 ** rowBits - 1)) - (2 ** rowBits - 1);
  });
}
