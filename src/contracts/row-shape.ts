/** How token vectors are stored: native/kernels/rows.h has the format. */

export interface RowShape {
  readonly dim: number;
  /** Bits of a component: 1, 2, 4 or 8. */
  readonly rowBits: number;
}

/** Codes of a strip: rows of few bits are whole strips. */
export const stripCodes = 32;

/** Bytes of one stored row, without its scale. */
export function rowBytes({ dim, rowBits }: RowShape): number {
  return rowBits === 8 ? dim : Math.ceil(dim / stripCodes) * (stripCodes / 8) * rowBits;
}

/** Bytes of one stored row with its scale, an f16. */
export function storedRowBytes(shape: RowShape): number {
  return rowBytes(shape) + 2;
}

/** How many rows are left of the vectors of a chunk, when one row is stored for `poolFactor` of them. */
export function rowsLeft(vectors: number, { poolFactor }: { readonly poolFactor: number }): number {
  return Math.ceil(vectors / poolFactor);
}

/** The most rows that are left of chunks with so many vectors together. The last row of each chunk may stand for fewer vectors. */
export function rowsLeftMax(
  { vectors, chunks }: { readonly vectors: number; readonly chunks: number },
  { poolFactor }: { readonly poolFactor: number },
): number {
  return Math.floor((vectors + chunks * (poolFactor - 1)) / poolFactor);
}
