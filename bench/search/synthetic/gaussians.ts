/** Normal deviates by the hundred million, and the small linear algebra of covariances. */
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

/** Covariance [dim x dim] of rows [n x dim] around nothing. */
export function covariance(rows: Float32Array, dim: number): Float64Array {
  const sums = new Float64Array(dim * dim);
  const count = rows.length / dim;
  for (let row = 0; row < rows.length; row += dim) {
    for (let i = 0; i < dim; i++) {
      const value = rows[row + i]!;
      for (let j = 0; j <= i; j++) sums[i * dim + j]! += value * rows[row + j]!;
    }
  }
  for (let i = 0; i < dim; i++) {
    for (let j = 0; j <= i; j++) {
      sums[i * dim + j]! /= count;
      sums[j * dim + i] = sums[i * dim + j]!;
    }
  }
  return sums;
}

/** Cholesky's lower triangle of a covariance, of which a little is added to the diagonal. */
export function cholesky(matrix: Float64Array, dim: number): Float32Array {
  const lower = new Float64Array(dim * dim);
  for (let i = 0; i < dim; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * dim + j]! + (i === j ? 1e-7 : 0);
      for (let k = 0; k < j; k++) sum -= lower[i * dim + k]! * lower[j * dim + k]!;
      lower[i * dim + j] = i === j ? Math.sqrt(Math.max(sum, 1e-12)) : sum / lower[j * dim + j]!;
    }
  }
  return Float32Array.from(lower);
}

/** Eigenvectors of a symmetric matrix as rows [dim x dim], and eigenvalues; Jacobi's rotations. */
export function eigen(
  symmetric: Float64Array,
  dim: number,
): { readonly vectors: Float64Array; readonly values: Float64Array } {
  const a = Float64Array.from(symmetric);
  const v = new Float64Array(dim * dim);
  for (let i = 0; i < dim; i++) v[i * dim + i] = 1;
  const sweeps = 12;
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (let p = 0; p < dim; p++) {
      for (let q = p + 1; q < dim; q++) rotate(a, v, p, q, dim);
    }
  }
  return { vectors: v, values: Float64Array.from({ length: dim }, (_, i) => a[i * dim + i]!) };
}

function rotate(a: Float64Array, v: Float64Array, p: number, q: number, dim: number): void {
  const apq = a[p * dim + q]!;
  if (Math.abs(apq) < 1e-14) return;
  const theta = (a[q * dim + q]! - a[p * dim + p]!) / (2 * apq);
  const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const c = 1 / Math.sqrt(t * t + 1);
  const s = t * c;
  for (let k = 0; k < dim; k++) {
    const kp = a[k * dim + p]!;
    const kq = a[k * dim + q]!;
    a[k * dim + p] = c * kp - s * kq;
    a[k * dim + q] = s * kp + c * kq;
  }
  for (let k = 0; k < dim; k++) {
    const pk = a[p * dim + k]!;
    const qk = a[q * dim + k]!;
    a[p * dim + k] = c * pk - s * qk;
    a[q * dim + k] = s * pk + c * qk;
    const vp = v[p * dim + k]!;
    const vq = v[q * dim + k]!;
    v[p * dim + k] = c * vp - s * vq;
    v[q * dim + k] = s * vp + c * vq;
  }
}

/** Rows [n x dim] in the basis of the axes [dim x dim]. */
export function rotated(rows: Float32Array, axes: Float64Array, dim: number): Float32Array {
  const result = new Float32Array(rows.length);
  for (let row = 0; row < rows.length; row += dim) {
    for (let axis = 0; axis < dim; axis++) {
      let sum = 0;
      for (let d = 0; d < dim; d++) sum += axes[axis * dim + d]! * rows[row + d]!;
      result[row + axis] = sum;
    }
  }
  return result;
}

/** Means [groups x dim] of the rows of each group, and their numbers. */
export function groupMeans(
  rows: Float32Array,
  groupOf: ArrayLike<number>,
  groups: number,
  dim: number,
): { readonly means: Float32Array; readonly sizes: Float32Array } {
  const sums = new Float64Array(groups * dim);
  const sizes = new Float32Array(groups);
  for (let row = 0; row < groupOf.length; row++) {
    const group = groupOf[row]!;
    sizes[group]! += 1;
    for (let d = 0; d < dim; d++) sums[group * dim + d]! += rows[row * dim + d]!;
  }
  return {
    means: Float32Array.from(sums, (sum, at) => sum / Math.max(1, sizes[Math.floor(at / dim)]!)),
    sizes,
  };
}

/** Rows less the mean of their group. */
export function minus(
  rows: Float32Array,
  means: Float32Array,
  groupOf: ArrayLike<number>,
  dim: number,
): Float32Array {
  const result = new Float32Array(rows.length);
  for (let row = 0; row < groupOf.length; row++) {
    const mean = groupOf[row]! * dim;
    for (let d = 0; d < dim; d++) result[row * dim + d] = rows[row * dim + d]! - means[mean + d]!;
  }
  return result;
}

/** Share of the variance that rows of a group have in common: the mean product of two of them by the mean square. */
export function sharedVariance(rows: Float32Array, groupOf: ArrayLike<number>, dim: number): number {
  const groups = new Map<number, number[]>();
  for (let row = 0; row < groupOf.length; row++) {
    const members = groups.get(groupOf[row]!);
    if (members === undefined) groups.set(groupOf[row]!, [row]);
    else members.push(row);
  }
  let products = 0;
  let squares = 0;
  for (const members of groups.values()) {
    if (members.length < 2) continue;
    const sum = new Float64Array(dim);
    let square = 0;
    for (const row of members) {
      for (let d = 0; d < dim; d++) {
        const value = rows[row * dim + d]!;
        sum[d]! += value;
        square += value * value;
      }
    }
    const total = sum.reduce((all, value) => all + value * value, 0);
    products += (total - square) / (members.length - 1);
    squares += square;
  }
  return squares === 0 ? 0 : products / squares;
}
