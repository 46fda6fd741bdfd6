/**
 * Stored rows of the vectors of documents. Similar vectors of a text may be pooled, so that a row is the unit mean of several
 * (`native/kernels/encoding/pooling.h`).
 *
 * Rows have 8, 4, 2 or 1 bits a component. With fewer than 8 a vector is rotated by a pseudo-random orthogonal matrix, which is
 * the same for every model of its dimension, then each component becomes a code. One scale a row makes the product of the row
 * with its own vector exact: the estimator of RaBitQ (Gao et al., arXiv:2405.12497 and 2409.09913). Query vectors are rotated,
 * too. Codes may be refined, so that they lose less along queries (`native/kernels/encoding/refined.h`).
 *
 * The addon does the arithmetic (`native/kernels/encoding`). `models/rows.py` says the same in Python.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { builtFile } from '../../process/installation.ts';
import type { RowShape } from '../../contracts/row-shape.ts';
import type { PooledTokens } from '../protocol/row-places.ts';

interface Addon {
  rotateRows(vectors: Float32Array, dim: number, factors: Float32Array): void;
  rowRules(rules: AddonRules): object;
  documentRows(rules: object, vectors: Float32Array, counts: Uint32Array): DocumentRows;
  documentRowsLater(rules: object, vectors: Float32Array, counts: Uint32Array): Promise<DocumentRows>;
}

interface AddonRules extends RowRules {
  readonly factors: Float32Array | undefined;
}

/** How the document vectors of a model become stored rows. */
export interface RowRules extends RowShape {
  /** One row is left of so many vectors of a text. */
  readonly poolFactor: number;
  /** f32 [dim], subtracted from vectors; absent when the model is not centred. */
  readonly centring: Float32Array | undefined;
  /** f16 [dim x dim]: the moment of rotated unit vectors, with which codes are refined; absent when they are not. */
  readonly moment: Uint16Array | undefined;
}

/** The stored rows of some texts, one text after the other. */
export interface DocumentRows extends PooledTokens {
  /** Milliseconds that they took. */
  readonly tookMs: number;
  /** `rowBytes` of each row. */
  readonly stored: Int8Array;
  /** f32 [rows]; value = component * scale. A vector of zeros has scale 0. One with a value that is no number has such a scale. */
  readonly scales: Float32Array;
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

  get factors(): Float32Array {
    return this.#factors;
  }

  /** Rotates f32 [rows x dim] in place. */
  apply(vectors: Float32Array): void {
    addon.rotateRows(vectors, this.#dim, this.#factors);
  }
}

/** Makes stored rows by the rules of a model. */
export class RowMaker {
  readonly #rules: object;

  constructor(rules: RowRules) {
    const factors = rules.rowBits === 8 ? undefined : new Rotation(rules.dim).factors;
    this.#rules = addon.rowRules({ ...rules, factors });
  }

  /** `vectors`: f32 [vectors x dim], which is overwritten. `counts`: u32 [texts], the vectors of each text. */
  make(vectors: Float32Array, counts: Uint32Array): DocumentRows {
    return addon.documentRows(this.#rules, vectors, counts);
  }

  /** The same on another thread. The arrays must not change before the promise settles. */
  makeLater(vectors: Float32Array, counts: Uint32Array): Promise<DocumentRows> {
    return addon.documentRowsLater(this.#rules, vectors, counts);
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
