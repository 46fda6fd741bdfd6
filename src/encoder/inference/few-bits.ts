/**
 * Rows of 1, 2 or 4 bits a component. A vector is rotated by a pseudo-random orthogonal matrix, which is the same for every model
 * of its dimension, then each component becomes a code. One scale a row makes the product of the row with its own vector
 * exact: the estimator of RaBitQ (Gao et al., arXiv:2405.12497 and 2409.09913). Query vectors are rotated, too.
 *
 * The addon does the arithmetic (native/kernels/few_bits.h). `models/rows.py` says the same in Python.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { builtFile } from '../../process/installation.ts';
import type { RowShape } from '../../contracts/row-shape.ts';

interface Addon {
  rotateRows(vectors: Float32Array, dim: number, factors: Float32Array, mean?: Float32Array): void;
  quantizeRows(
    vectors: Float32Array,
    dim: number,
    rowBits: number,
    stored: Int8Array,
    scales: Float32Array,
  ): void;
}

const addon = createRequire(import.meta.url)(builtFile('maxsimd.node')) as Addon;

const rounds = 4;

/**
 * Signs and Walsh-Hadamard transforms, in turn of the first and of the last 2^k dimensions, the largest power of two that
 * fits. Some 10 operations a dimension and round.
 */
export class Rotation {
  readonly #dim: number;
  /** f32 [rounds x dim]: +1 or -1, divided by the growth of a transform where one follows. */
  readonly #factors: Float32Array;

  constructor(dim: number) {
    this.#dim = dim;
    const size = 2 ** Math.floor(Math.log2(dim));
    this.#factors = new Float32Array(rounds * dim);
    const growth = Math.sqrt(size);
    for (let round = 0; round < rounds; round += 1) {
      const start = round % 2 === 0 ? 0 : dim - size;
      for (const [d, sign] of signs(round, dim).entries()) {
        const isTransformed = d >= start && d < start + size;
        this.#factors[round * dim + d] = isTransformed ? sign / growth : sign;
      }
    }
  }

  /** Rotates f32 [rows x dim] in place. `mean` f32 [dim] is subtracted first if it is given. */
  apply(vectors: Float32Array, mean?: Float32Array): void {
    addon.rotateRows(vectors, this.#dim, this.#factors, mean);
  }
}

/**
 * Quantises f32 [rows x dim], which is rotated, into `stored`, `rowBytes` each, and `scales` f32 [rows]; value = component *
 * scale. A zero row has scale 0. A row with a value that is no number has such a scale, and the receiver refuses it.
 */
export function quantizeFewBits(
  vectors: Float32Array,
  { dim, rowBits }: RowShape,
  stored: Int8Array,
  scales: Float32Array,
): void {
  addon.quantizeRows(vectors, dim, rowBits, stored, scales);
}

/** +1 or -1 for each dimension, by the bits of SHA-256, the highest bit of a byte first. */
function signs(round: number, dim: number): readonly number[] {
  const blocks = Array.from({ length: Math.ceil(dim / 256) }, (_, block) =>
    createHash('sha256').update(`${round}:${block}`).digest(),
  );
  const bytes = Buffer.concat(blocks);
  return Array.from({ length: dim }, (_, d) => ((bytes[d >> 3]! >> (7 - (d & 7))) & 1 ? -1 : 1));
}
