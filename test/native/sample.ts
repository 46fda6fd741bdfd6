/** Clustered token vectors, records and handles for the tests of the addon. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { NativeRecord, NativeSearch } from '../../src/index/engine/native.ts';

export function temporaryDirectory(): { readonly path: string; readonly [Symbol.dispose]: () => void } {
  const directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-native-'));
  return { path: directory, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}

const halfView = new Uint16Array(1);
const halfFloat = new Float16Array(halfView.buffer);

function toHalf(value: number): number {
  halfFloat[0] = value;
  return halfView[0]!;
}

/** int8 with one scale: value = vector * scale. */
function quantise(vector: Float32Array): { readonly values: Int8Array; readonly scale: number } {
  const largest = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-20);
  return {
    values: Int8Array.from(vector, (value) => Math.round((value / largest) * 127)),
    scale: largest / 127,
  };
}

/** Unit vectors around centres. */
export class Clusters {
  readonly dim: number;
  readonly centres: readonly Float32Array[];
  readonly #random: () => number;

  constructor(random: () => number, dim: number, count: number) {
    this.#random = random;
    this.dim = dim;
    this.centres = Array.from({ length: count }, () =>
      this.#unit(Float32Array.from({ length: dim }, () => this.#bell())),
    );
  }

  #bell(): number {
    return this.#random() + this.#random() + this.#random() - 1.5;
  }

  #unit(vector: Float32Array): Float32Array {
    const length = Math.hypot(...vector);
    return vector.map((value) => value / length);
  }

  near(centre: number, spread = 0.25): Float32Array {
    const from = this.centres[centre % this.centres.length]!;
    return this.#unit(from.map((value) => value + (2 * spread * this.#bell()) / Math.sqrt(this.dim)));
  }

  /** One chunk after the other, each about a topic of a dozen neighbouring centres. */
  record(
    versionId: number,
    chunkRows: readonly number[],
    terms: Uint8Array = new Uint8Array(0),
  ): NativeRecord {
    const rows = chunkRows.reduce((sum, count) => sum + count, 0);
    const vectors = new Int8Array(rows * this.dim);
    const scales = new Uint16Array(rows);
    let row = 0;
    for (const count of chunkRows) {
      const topic = Math.floor(this.#random() * this.centres.length);
      for (let end = row + count; row < end; row++) {
        const { values, scale } = quantise(this.near(topic + Math.floor(this.#random() * 12)));
        vectors.set(values, row * this.dim);
        scales[row] = toHalf(scale);
      }
    }
    const chunkRanges = Uint32Array.from(
      chunkRows.flatMap((count, chunk) => [chunk, chunk + versionId + 1, count]),
    );
    const rowPlaces = Uint8Array.from({ length: rows }, () => Math.floor(this.#random() * 256));
    return {
      versionId,
      chunkRows: Uint32Array.from(chunkRows),
      vectors,
      scales,
      terms,
      chunkRanges,
      rowPlaces,
    };
  }

  search(generation: number, options: Partial<NativeSearch> = {}): NativeSearch {
    const rows = 16;
    const topic = Math.floor(this.#random() * this.centres.length);
    const query = new Float32Array(rows * this.dim);
    for (let row = 0; row < rows; row++) {
      query.set(this.near(topic + Math.floor(this.#random() * 12)), row * this.dim);
    }
    const offsets = new Float32Array(rows);
    return {
      query,
      offsets,
      topK: 10,
      candidateK: 100,
      generation,
      components: false,
      timeoutMs: 60_000,
      ...options,
    };
  }
}

export function term(value: number): Uint8Array {
  return new Uint8Array(16).fill(value);
}

/** Columns of `publish` for records of one segment. */
export function columns(segmentId: number, records: readonly number[]) {
  return { segmentIds: new Float64Array(records.length).fill(segmentId), records: Uint32Array.from(records) };
}

export const noLifespans = columns(0, []);

/**
 * Token vectors around 200 centres at random, without topics. The larger the spread, the more chunks nearly tie and the less their codes say:
 * at 64 dimensions, with 6,000 chunks of 8 rows, a search at the default `candidate_k` finds all of the best ten at a spread of .8, and less at 1 and
 * more.
 */
export class Blur {
  readonly #clusters: Clusters;
  readonly #random: () => number;

  constructor(random: () => number, dim: number) {
    this.#random = random;
    this.#clusters = new Clusters(random, dim, 200);
  }

  record(versionId: number, rows: number, spread: number): NativeRecord {
    const record = this.#clusters.record(versionId, [rows]);
    const { dim } = this.#clusters;
    for (let row = 0; row < rows; row++) {
      const { values, scale } = quantise(this.#row(spread));
      record.vectors.set(values, row * dim);
      record.scales[row] = toHalf(scale);
    }
    return record;
  }

  query(rows: number, spread: number): Float32Array {
    return Float32Array.from(Array.from({ length: rows }, () => [...this.#row(spread)]).flat());
  }

  #row(spread: number): Float32Array {
    return this.#clusters.near(Math.floor(this.#random() * 200), spread);
  }
}
