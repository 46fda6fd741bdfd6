/**
 * Rows of 1, 2 or 4 bits a component. A vector is rotated by a pseudo-random orthogonal matrix, which is the same for every model
 * of its dimension, then each component becomes a code. One scale a row makes the product of the row with its own vector
 * exact: the estimator of RaBitQ (Gao et al., arXiv:2405.12497 and 2409.09913). Query vectors are rotated, too.
 *
 * `models/rows.py` says the same in Python.
 */
import { createHash } from 'node:crypto';
import { rowBytes, stripCodes, type RowShape } from '../../row-shape.ts';

const rounds = 4;
/** Standard deviations of a row's components that the codes span on either side, by bits. */
const clips: Readonly<Record<number, number>> = { 4: 2.4, 2: 2 };

/**
 * Signs and Walsh-Hadamard transforms, in turn of the first and of the last 2^k dimensions, the largest power of two that
 * fits. Some 10 operations a dimension and round.
 */
export class Rotation {
  readonly #dim: number;
  readonly #size: number;
  /** f32 [rounds x dim]: +1 or -1, divided by the growth of a transform where one follows. */
  readonly #factors: Float32Array;

  constructor(dim: number) {
    this.#dim = dim;
    this.#size = 2 ** Math.floor(Math.log2(dim));
    this.#factors = new Float32Array(rounds * dim);
    const growth = Math.sqrt(this.#size);
    for (let round = 0; round < rounds; round += 1) {
      const start = this.#startOf(round);
      for (const [d, sign] of signs(round, dim).entries()) {
        const isTransformed = d >= start && d < start + this.#size;
        this.#factors[round * dim + d] = isTransformed ? sign / growth : sign;
      }
    }
  }

  /** Rotates f32 [rows x dim] in place. */
  apply(vectors: Float32Array): void {
    const dim = this.#dim;
    for (let row = 0; row < vectors.length; row += dim) {
      for (let round = 0; round < rounds; round += 1) {
        for (let d = 0; d < dim; d += 1) vectors[row + d]! *= this.#factors[round * dim + d]!;
        transform(vectors, row + this.#startOf(round), this.#size);
      }
    }
  }

  #startOf(round: number): number {
    return round % 2 === 0 ? 0 : this.#dim - this.#size;
  }
}

/** Subtracts f32 [dim] from each of f32 [rows x dim], in place: the centring mean, before a rotation. */
export function subtractFromRows(vectors: Float32Array, mean: Float32Array): void {
  for (let row = 0; row < vectors.length; row += mean.length)
    for (let d = 0; d < mean.length; d += 1) vectors[row + d]! -= mean[d]!;
}

/**
 * Quantises f32 [rows x dim], which is rotated, into `stored`, `rowBytes` each, and `scales` f32 [rows]; value = component *
 * scale. A zero row has scale 0. A row with a value that is no number has such a scale, and the receiver refuses it.
 */
export function quantizeFewBits(
  vectors: Float32Array,
  shape: RowShape,
  stored: Int8Array,
  scales: Float32Array,
): void {
  const { dim, rowBits } = shape;
  const bytes = rowBytes(shape);
  const most = 2 ** rowBits - 1;
  const width = (stripCodes / 8) * rowBits;
  stored.fill(0);
  for (let row = 0; row < scales.length; row += 1) {
    const from = row * dim;
    let squares = 0;
    for (let d = 0; d < dim; d += 1) squares += vectors[from + d]! ** 2;
    const codesOfUnit = stepsOf(rowBits, Math.sqrt(squares / dim));
    let product = 0;
    for (let d = 0; d < dim; d += 1) {
      const value = vectors[from + d]!;
      const code = Math.max(0, Math.min(most, Math.floor(value * codesOfUnit) + (most + 1) / 2));
      product += (2 * code - most) * value;
      const within = d % stripCodes;
      const at = row * bytes + Math.floor(d / stripCodes) * width + (within % width);
      stored[at]! |= code << (Math.floor(within / width) * rowBits);
    }
    scales[row] = squares === 0 ? 0 : squares / product;
  }
}

/** Codes that a component of length 1 spans. With one bit only its sign counts. */
function stepsOf(rowBits: number, deviation: number): number {
  const clip = clips[rowBits];
  if (clip === undefined) return 1;
  return deviation === 0 ? 0 : 2 ** (rowBits - 1) / (clip * deviation);
}

/** Walsh-Hadamard transform of `size` values, a power of two, in place. It makes a vector longer by the root of `size`. */
function transform(values: Float32Array, start: number, size: number): void {
  for (let width = 1; width < size; width *= 2) {
    for (let block = start; block < start + size; block += 2 * width) {
      for (let i = block; i < block + width; i += 1) {
        const low = values[i]!;
        const high = values[i + width]!;
        values[i] = low + high;
        values[i + width] = low - high;
      }
    }
  }
}

/** +1 or -1 for each dimension, by the bits of SHA-256, the highest bit of a byte first. */
function signs(round: number, dim: number): readonly number[] {
  const blocks = Array.from({ length: Math.ceil(dim / 256) }, (_, block) =>
    createHash('sha256').update(`${round}:${block}`).digest(),
  );
  const bytes = Buffer.concat(blocks);
  return Array.from({ length: dim }, (_, d) => ((bytes[d >> 3]! >> (7 - (d & 7))) & 1 ? -1 : 1));
}
