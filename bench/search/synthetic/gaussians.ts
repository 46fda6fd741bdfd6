/** Normal deviates by the hundred million. */
import { seededRandom } from '../../lib/seeded-random.ts';

const tableSize = 1 << 20;

/**
 * Draws rows as the sum of two stretches of a table of normal deviates, each at a random place: 2^40 different rows
 * for two additions a value.
 */
export class Gaussians {
  readonly #table = new Float32Array(tableSize + 4096);

  constructor(seed: number) {
    const random = seededRandom(seed);
    const half = Math.SQRT1_2;
    for (let at = 0; at < tableSize; at += 2) {
      const radius = half * Math.sqrt(-2 * Math.log(1 - random()));
      const angle = 2 * Math.PI * random();
      this.#table[at] = radius * Math.cos(angle);
      this.#table[at + 1] = radius * Math.sin(angle);
    }
    this.#table.copyWithin(tableSize, 0, 4096);
  }

  /** At most 4,096 values. */
  draw(row: Float32Array, random: () => number): void {
    const one = Math.floor(random() * tableSize);
    const other = Math.floor(random() * tableSize);
    for (let d = 0; d < row.length; d++) row[d] = this.#table[one + d]! + this.#table[other + d]!;
  }
}

/** Lower triangle [dim x dim] times a vector. */
export function lowerTimes(lower: Float32Array, vector: Float32Array, dim: number): Float32Array {
  const product = new Float32Array(dim);
  for (let i = 0; i < dim; i++) {
    let sum = 0;
    for (let j = 0; j <= i; j++) sum += lower[i * dim + j]! * vector[j]!;
    product[i] = sum;
  }
  return product;
}
