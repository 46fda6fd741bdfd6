import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { quantizeFewBits, Rotation } from '../../../src/encoder/inference/few-bits.ts';
import { rowBytes } from '../../../src/contracts/row-shape.ts';
import { componentsOf } from '../../../bench/lib/vectors.ts';

const rows = 3;

/** The vectors that models/rows.py was asked about. */
function vectorsOf(dim: number): Float32Array {
  return Float32Array.from({ length: rows * dim }, (_, at) => {
    const d = at % dim;
    return (((d * 37 + ((at - d) / dim) * 11) % 101) - 50) / 50;
  });
}

function stored(vectors: Float32Array, dim: number, rowBits: number) {
  const bytes = rowBytes({ dim, rowBits });
  const values = new Int8Array((vectors.length / dim) * bytes);
  const scales = new Float32Array(vectors.length / dim);
  quantizeFewBits(vectors, { dim, rowBits }, values, scales);
  return Array.from(scales, (scale, row) => ({
    scale,
    components: [...componentsOf(values, { dim, rowBits }, row)],
  }));
}

const dot = (one: ArrayLike<number>, other: ArrayLike<number>): number =>
  Array.from(one).reduce((sum, value, d) => sum + value * other[d]!, 0);

describe('rotation', () => {
  it('gives what models/rows.py gives', () => {
    const firsts = {
      3: [0.26991, -0.7742, -0.65403],
      48: [0.65595, -0.08216, 0.95267, -0.50355],
      128: [0.59303, 0.66248, 0.09658, -0.79373],
      384: [-1.07434, -0.48305, 0.10109, 0.13066],
    };
    for (const [name, expected] of Object.entries(firsts)) {
      const dim = Number(name);
      const vectors = vectorsOf(dim);
      new Rotation(dim).apply(vectors);
      for (const [d, value] of expected.entries()) expect(vectors[dim + d]).toBeCloseTo(value, 4);
    }
  });

  it('keeps every product of two vectors', () => {
    for (const dim of [1, 2, 31, 96, 384, 1000]) {
      const vectors = vectorsOf(dim);
      const before = dot(vectors.subarray(0, dim), vectors.subarray(dim, 2 * dim));
      new Rotation(dim).apply(vectors);
      expect(dot(vectors.subarray(0, dim), vectors.subarray(dim, 2 * dim))).toBeCloseTo(before, 3);
    }
  });
});

describe('rows of few bits', () => {
  it('are what models/rows.py makes', () => {
    const vectors = vectorsOf(384);
    new Rotation(384).apply(vectors);
    const expected = {
      1: { first: [-1, -1, 1, 1, -1, -1, 1, 1], scale: 0.7153 },
      2: { first: [-3, -3, 1, 1, -3, -1, 1, 3], scale: 0.3232 },
      4: { first: [-13, -7, 1, 5, -15, -3, 1, 11], scale: 0.0891 },
    };
    for (const [rowBits, { first, scale }] of Object.entries(expected)) {
      const row = stored(vectors, 384, Number(rowBits))[2]!;
      expect(Array.from(row.components).slice(0, 8)).toEqual(first);
      expect(row.scale).toBeCloseTo(scale, 3);
    }
  });

  /** SHA-256 of rows that the first release made of some vectors. Stored rows must stay comparable with queries. */
  it.each([
    [1, 2, '4dbfead2f9c17760'],
    [2, 1, '62c82512883cc04f'],
    [3, 4, '76ecb0e5b9f9eb7a'],
    [48, 2, 'cb6f8e72baf57f1d'],
    [100, 4, 'b8b60951d43087f5'],
    [128, 1, '69ab8205e4e580aa'],
    [384, 1, 'e83f2863d2d678e5'],
    [384, 2, '16a65fd01661e0e8'],
    [384, 4, 'a42603236520908b'],
  ])('of %i dimensions and %i bits never change', (dim, rowBits, expected) => {
    let state = 1;
    const vectors = Float32Array.from({ length: 7 * dim }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
      return (state / 2 ** 31) ** 3;
    });
    const mean = vectors.slice(0, dim);
    new Rotation(dim).apply(vectors, mean);
    const values = new Int8Array(7 * rowBytes({ dim, rowBits }));
    const scales = new Float32Array(7);
    quantizeFewBits(vectors, { dim, rowBits }, values, scales);
    const hash = createHash('sha256');
    for (const bytes of [vectors, values, scales]) hash.update(bytes);
    expect(hash.digest('hex').slice(0, 16)).toBe(expected);
  });

  it('have an exact product with their own vector, and a close one with others', () => {
    const dim = 384;
    const vectors = vectorsOf(dim);
    new Rotation(dim).apply(vectors);
    const own = vectors.subarray(0, dim);
    const other = vectors.subarray(dim, 2 * dim);
    const lengths = Math.sqrt(dot(own, own) * dot(other, other));
    for (const [rowBits, error] of [
      [1, 0.05],
      [2, 0.03],
      [4, 0.01],
    ] as const) {
      const { scale, components } = stored(vectors, dim, rowBits)[0]!;
      expect(scale * dot(components, own)).toBeCloseTo(dot(own, own), 3);
      expect(Math.abs(scale * dot(components, other) - dot(own, other)) / lengths).toBeLessThan(error);
    }
  });

  it('are the same one by one and thousands at a time', () => {
    const dim = 32;
    const many = Float32Array.from({ length: 5000 * dim }, (_, at) => Math.sin(at * at));
    const single = many.slice();
    new Rotation(dim).apply(many);
    const together = stored(many, dim, 2);
    for (let row = 0; row < 5000; row += 77) {
      const one = single.subarray(row * dim, (row + 1) * dim);
      new Rotation(dim).apply(one);
      expect(stored(one, dim, 2)).toEqual([together[row]]);
    }
  });

  it('take whole strips', () => {
    expect([1, 31, 32, 33, 96, 384].map((dim) => rowBytes({ dim, rowBits: 2 }))).toEqual([
      8, 8, 8, 16, 24, 96,
    ]);
    expect(rowBytes({ dim: 33, rowBits: 8 })).toBe(33);
  });

  it('of zeros have scale 0, and those of what is no number a scale that is none', () => {
    for (const rowBits of [1, 2, 4]) {
      expect(stored(new Float32Array(64), 64, rowBits)[0]!.scale).toBe(0);
      expect(stored(new Float32Array(64).fill(Number.NaN, 3, 4), 64, rowBits)[0]!.scale).toBeNaN();
    }
  });
});
