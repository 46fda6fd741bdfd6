import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { halfBits } from '../../../src/encoder/inference/halves.ts';
import { RowMaker, Rotation, type RowRules } from '../../../src/encoder/inference/rows.ts';
import { rowBytes, rowsLeft } from '../../../src/contracts/row-shape.ts';
import { componentsOf } from '../../../bench/lib/vectors.ts';

const rowCount = 3;

/** The vectors that models/rows.py was asked about. */
function vectorsOf(dim: number): Float32Array {
  return Float32Array.from({ length: rowCount * dim }, (_, at) => {
    const d = at % dim;
    return (((d * 37 + ((at - d) / dim) * 11) % 101) - 50) / 50;
  });
}

const plain = { poolFactor: 1, centring: undefined, moment: undefined } as const;

function made(vectors: Float32Array, rules: Partial<RowRules> & Pick<RowRules, 'dim' | 'rowBits'>) {
  const counts = Uint32Array.of(vectors.length / rules.dim);
  return new RowMaker({ ...plain, ...rules }).make(vectors.slice(), counts);
}

function stored(vectors: Float32Array, dim: number, rowBits: number) {
  const { stored: values, scales } = made(vectors, { dim, rowBits });
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
    const centring = vectors.slice(0, dim);
    const { stored: values, scales } = made(vectors, { dim, rowBits, centring });
    const rotated = vectors.map((value, at) => value - centring[at % dim]!);
    new Rotation(dim).apply(rotated);
    const hash = createHash('sha256');
    for (const bytes of [rotated, values, scales]) hash.update(bytes);
    expect(hash.digest('hex').slice(0, 16)).toBe(expected);
  });

  it('have an exact product with their own vector, and a close one with others', () => {
    const dim = 384;
    const vectors = vectorsOf(dim);
    const rotated = vectors.slice();
    new Rotation(dim).apply(rotated);
    const own = rotated.subarray(0, dim);
    const other = rotated.subarray(dim, 2 * dim);
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
    const together = stored(many, dim, 2);
    for (let row = 0; row < 5000; row += 77) {
      const one = many.subarray(row * dim, (row + 1) * dim);
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
    for (const rowBits of [1, 2, 4, 8]) {
      expect(stored(new Float32Array(64), 64, rowBits)[0]!.scale).toBe(0);
      expect(stored(new Float32Array(64).fill(Number.NaN, 3, 4), 64, rowBits)[0]!.scale).toBeNaN();
    }
  });
});

describe('rows of 8 bits', () => {
  it('are the nearest components, half to even, less the mean', () => {
    const { stored: values, scales } = made(Float32Array.of(254, 3, -5, 0), {
      dim: 4,
      rowBits: 8,
      centring: Float32Array.of(0, 0, 0, 1),
    });
    expect([Array.from(values), Array.from(scales)]).toEqual([[127, 2, -2, 0], [2]]);
  });
});

/** Unit vectors, some of which are close to each other. */
function unitVectors(count: number, dim: number, seed = 1): Float32Array {
  let state = seed;
  const vectors = Float32Array.from({ length: count * dim }, (_, at) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    const group = Math.floor(at / dim) % 5;
    return (state / 2 ** 31) * 0.4 + Number(at % dim === group);
  });
  for (let row = 0; row < count; row += 1) {
    const own = vectors.subarray(row * dim, (row + 1) * dim);
    const length = Math.sqrt(dot(own, own));
    for (const d of own.keys()) own[d]! /= length;
  }
  return vectors;
}

describe('pooled rows', () => {
  const dim = 32;
  const rules = { ...plain, dim, rowBits: 2, poolFactor: 3 };

  it('are the unit means of their vectors, text by text, in the order of their representatives', () => {
    const counts = Uint32Array.of(10, 1, 0, 7);
    const vectors = unitVectors(18, dim);
    const pooled = new RowMaker(rules).make(vectors.slice(), counts);
    expect(pooled.scales.length).toBe(rowsLeft(10, rules) + rowsLeft(1, rules) + rowsLeft(7, rules));
    expect(pooled.pooledOf).toHaveLength(18);
    let [first, row] = [0, 0];
    for (const count of counts) {
      const rows = rowsLeft(count, rules);
      const representatives = Array.from(pooled.representatives.subarray(row, row + rows));
      expect(representatives).toEqual(representatives.toSorted((one, other) => one - other));
      const means = new Float32Array(rows * dim);
      for (let at = 0; at < count; at += 1) {
        const to = pooled.pooledOf[first + at]! * dim;
        for (let d = 0; d < dim; d += 1) means[to + d]! += vectors[(first + at) * dim + d]!;
      }
      for (let at = 0; at < rows; at += 1) {
        const mean = means.subarray(at * dim, (at + 1) * dim);
        const length = Math.sqrt(dot(mean, mean));
        for (const d of mean.keys()) mean[d]! /= length;
        expect(pooled.pooledOf[first + representatives[at]!]).toBe(at);
      }
      const expected = new RowMaker({ ...rules, poolFactor: 1 }).make(means, Uint32Array.of(rows));
      expect(pooled.scales.subarray(row, row + rows)).toEqual(expected.scales);
      [first, row] = [first + count, row + rows];
    }
  });

  it('are the same on another thread, and for thousands of vectors at a time', async () => {
    const counts = Uint32Array.from({ length: 40 }, (_, text) => 100 + text);
    const vectors = unitVectors(
      counts.reduce((sum, count) => sum + count, 0),
      dim,
    );
    const maker = new RowMaker(rules);
    const together = await maker.makeLater(vectors.slice(), counts);
    expect(maker.make(vectors.slice(), counts)).toEqual({ ...together, tookMs: expect.any(Number) });
    const alone = maker.make(vectors.slice(0, 100 * dim), counts.slice(0, 1));
    expect(together.scales.subarray(0, alone.scales.length)).toEqual(alone.scales);
    expect(together.stored.subarray(0, alone.stored.length)).toEqual(alone.stored);
  });

  it('of what is no number have no number either', () => {
    const vectors = unitVectors(9, dim);
    vectors[4 * dim + 1] = Number.NaN;
    const { scales, pooledOf } = new RowMaker(rules).make(vectors, Uint32Array.of(9));
    expect(Array.from(scales, Number.isNaN)).toEqual(Array.from(scales, (_, row) => row === pooledOf[4]));
  });
});

describe('refined codes', () => {
  const dim = 48;
  /** f16 [dim x dim]: the moment of vectors. */
  const momentOf = (vectors: Float32Array): Float64Array => {
    const moment = new Float64Array(dim * dim);
    const rows = vectors.length / dim;
    for (let row = 0; row < rows; row += 1) {
      const own = vectors.subarray(row * dim, (row + 1) * dim);
      for (let i = 0; i < dim; i += 1)
        for (let j = 0; j < dim; j += 1) moment[i * dim + j]! += (own[i]! * own[j]!) / rows;
    }
    return moment;
  };

  it('lose less along the vectors of the moment, and keep the product with their own', () => {
    const vectors = unitVectors(60, dim);
    const rotated = vectors.slice();
    new Rotation(dim).apply(rotated);
    const moment = momentOf(rotated);
    const halves = halfBits(Float32Array.from(moment));
    const lossOf = (given: Uint16Array | undefined): number => {
      const { stored: values, scales } = made(vectors, { dim, rowBits: 2, moment: given });
      let loss = 0;
      for (const [row, scale] of scales.entries()) {
        const own = rotated.subarray(row * dim, (row + 1) * dim);
        const components = componentsOf(values, { dim, rowBits: 2 }, row);
        expect(scale * dot(components, own)).toBeCloseTo(1, 4);
        const error = Float64Array.from(own, (value, d) => value - scale * components[d]!);
        for (let i = 0; i < dim; i += 1)
          for (let j = 0; j < dim; j += 1) loss += error[i]! * moment[i * dim + j]! * error[j]!;
      }
      return loss;
    };
    expect(lossOf(halves)).toBeLessThan(0.6 * lossOf(undefined));
  });
});
