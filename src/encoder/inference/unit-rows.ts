/** Vectors of length 1. */

/** Gives each row of f32 [rows x dim] length 1, in place. A row of zeros stays. */
export function normalise(rows: Float32Array, dim: number): void {
  for (let from = 0; from < rows.length; from += dim) {
    let squares = 0;
    for (let d = from; d < from + dim; d++) squares += rows[d]! ** 2;
    const factor = squares === 0 ? 0 : 1 / Math.sqrt(squares);
    for (let d = from; d < from + dim; d++) rows[d]! *= factor;
  }
}
