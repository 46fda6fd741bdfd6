/**
 * Spherical k-means whose assignments the engine's own kernel makes: a batch of rows is a query, the centroids are one
 * chunk, and the best match of every row is its cluster.
 */
import { norm } from '../../lib/vectors.ts';
import type { NativeEngine } from '../../../src/index/engine/native.ts';
import { seededRandom } from '../../lib/seeded-random.ts';
import { quantiseRow } from '../corpus.ts';

export interface Clusters {
  readonly count: number;
  /** Unit directions, f32 [count x dim]. */
  readonly directions: Float32Array;
}

/** Query tokens of one call of the engine. */
const batchRows = 512;
const rounds = 8;

/** Rows are f32 [n x dim], of any length; their directions decide. */
export async function cluster(
  engine: NativeEngine,
  rows: Float32Array,
  dim: number,
  { count, seed }: { readonly count: number; readonly seed: number },
): Promise<Clusters> {
  const random = seededRandom(seed);
  const total = rows.length / dim;
  const pick = (): Float32Array => {
    const row = Math.floor(random() * total);
    return rows.subarray(row * dim, (row + 1) * dim);
  };
  const directions = new Float32Array(count * dim);
  for (let at = 0; at < count; at++) directions.set(unit(pick()), at * dim);
  for (let round = 0; round < rounds; round++) {
    const assigned = await nearest(engine, { count, directions }, rows, dim);
    const sums = new Float32Array(count * dim);
    const sizes = new Uint32Array(count);
    for (let row = 0; row < total; row++) {
      const own = assigned[row]!;
      sizes[own]! += 1;
      const length = norm(rows.subarray(row * dim, (row + 1) * dim)) || 1;
      for (let d = 0; d < dim; d++) sums[own * dim + d]! += rows[row * dim + d]! / length;
    }
    for (let at = 0; at < count; at++) {
      // An empty cluster starts again at some row.
      const sum = sizes[at] === 0 ? pick() : sums.subarray(at * dim, (at + 1) * dim);
      directions.set(unit(sum), at * dim);
    }
  }
  return { count, directions };
}

/** Cluster of every row. */
export async function nearest(
  engine: NativeEngine,
  { count, directions }: Clusters,
  rows: Float32Array,
  dim: number,
): Promise<Uint32Array> {
  const { vectors, scales } = quantised(directions, dim);
  const chunk = { chunkRows: Uint32Array.of(count), vectors, scales };
  const assigned = new Uint32Array(rows.length / dim);
  for (let from = 0; from < assigned.length; from += batchRows) {
    const query = rows.subarray(from * dim, (from + batchRows) * dim);
    const offsets = new Float32Array(query.length / dim);
    const { documentTokens } = await engine.score({ query, offsets, dim, components: true }, chunk);
    assigned.set(documentTokens!, from);
  }
  return assigned;
}

function quantised(rows: Float32Array, dim: number): { vectors: Int8Array; scales: Uint16Array } {
  const vectors = new Int8Array(rows.length);
  const scales = Uint16Array.from({ length: rows.length / dim }, (_, row) =>
    quantiseRow(rows.subarray(row * dim, (row + 1) * dim), vectors, row * dim),
  );
  return { vectors, scales };
}

export function unit(row: Float32Array): Float32Array {
  const length = norm(row) || 1;
  return row.map((value) => value / length);
}
