/** MaxSim of f32 rows here, and of stored rows by the engine, as the service does it: with queries of 8 bits. */
import type { RowShape } from '../../contracts/row-shape.ts';
import { halfBits } from '../../encoder/inference/halves.ts';
import type { DocumentRows } from '../../encoder/inference/rows.ts';
import type { NativeEngine } from '../../index/engine/native.ts';

export interface StoredRows {
  readonly vectors: Int8Array;
  readonly scales: Uint16Array;
}

export function storedRows({ stored, scales }: DocumentRows): StoredRows {
  return { vectors: stored, scales: halfBits(scales) };
}

/**
 * The scores of all passages, for each query. `queries`: f32 [rows x dim] each, rotated if the rows have fewer than 8 bits. The
 * product of a query with the centring mean is left out: it is the same for all passages, so it changes no ranking.
 */
export async function scoresByEngine(
  engine: NativeEngine,
  { dim, rowBits }: RowShape,
  queries: readonly Float32Array[],
  passages: readonly StoredRows[],
): Promise<readonly Float32Array[]> {
  const chunks = {
    chunkRows: Uint32Array.from(passages, ({ scales }) => scales.length),
    vectors: new Int8Array(joined(passages.map(({ vectors }) => vectors))),
    scales: new Uint16Array(joined(passages.map(({ scales }) => scales))),
  };
  const all: Float32Array[] = [];
  for (const query of queries) {
    const offsets = new Float32Array(query.length / dim);
    const { scores } = await engine.score({ query, offsets, dim, rowBits, components: false }, chunks);
    all.push(scores);
  }
  return all;
}

/** The bytes of arrays that are the whole of their buffers. */
function joined(arrays: readonly (Int8Array | Uint16Array)[]): ArrayBuffer {
  return new Uint8Array(Buffer.concat(arrays.map(({ buffer }) => new Uint8Array(buffer)))).buffer;
}

/** Rows up to a multiple of four. The first row is repeated, which changes no maximum. */
export function inTiles(rows: Float32Array, dim: number): Float32Array {
  const tile = 4 * dim;
  const tiled = new Float32Array(Math.ceil(rows.length / tile) * tile);
  tiled.set(rows);
  for (let at = rows.length; at < tiled.length; at += dim) tiled.set(rows.subarray(0, dim), at);
  return tiled;
}

/** Four rows of the passage at a time: that takes a quarter of the time of one. */
export function maxSim(query: Float32Array, tiled: Float32Array, dim: number): number {
  let score = 0;
  for (let q = 0; q < query.length; q += dim) {
    let most = Number.NEGATIVE_INFINITY;
    for (let first = 0; first < tiled.length; first += 4 * dim) {
      const [second, third, fourth] = [first + dim, first + 2 * dim, first + 3 * dim];
      let [a, b, c, d] = [0, 0, 0, 0];
      for (let i = 0; i < dim; i += 1) {
        const value = query[q + i]!;
        a += value * tiled[first + i]!;
        b += value * tiled[second + i]!;
        c += value * tiled[third + i]!;
        d += value * tiled[fourth + i]!;
      }
      most = Math.max(most, a, b, c, d);
    }
    score += most;
  }
  return score;
}
