/**
 * The time that the way from JavaScript through the addon and back adds to the kernel. `search` scores all chunks of an index,
 * and the kernel alone scores the same chunks, both on one thread.
 */
import path from 'node:path';
import { createEngine, type NativeRecord, type NativeSearch } from '../../src/index/engine/native.ts';
import { sum } from '../lib/statistics.ts';
import { scratchFolder } from '../lib/endings.ts';
import { seededRandom } from '../lib/seeded-random.ts';

export interface AddonOverheadOptions {
  readonly dim: number;
  readonly tokens: number;
  readonly chunks: number;
  readonly rounds: number;
  readonly seed: number;
}

/** Passes over the chunks a round and side; the fastest counts. */
const repeats = 10;
/** A cycle of 16 to 300 rows, as in the other scenarios. */
const rowsOf = (chunk: number): number => 16 + ((chunk * 97) % 285);
const scaleOfOneHundredth = 0x211f;

/** search / kernel, wall time, one ratio a round. */
export async function measureAddonOverhead(options: AddonOverheadOptions): Promise<readonly number[]> {
  using folder = scratchFolder('kernel-bench');
  const engine = createEngine({ threads: 1, kernel: 'auto' });
  try {
    const record = randomRecord(options);
    const rows = record.scales.length;
    const index = engine.createIndex({ dim: options.dim, exactTokenVectorsMax: rows });
    await index.createSegment(1, path.join(folder.path, 'segment'));
    await index.append(1, record);
    index.publish(
      1,
      { segmentIds: Float64Array.of(1), records: Uint32Array.of(0) },
      { segmentIds: new Float64Array(0), records: new Uint32Array(0) },
    );
    const query = Float32Array.from({ length: options.tokens * options.dim }, (_, i) => Math.sin(i));
    const offsets = new Float32Array(options.tokens);
    const search: NativeSearch = {
      query,
      offsets,
      topK: 10,
      candidateK: options.chunks,
      generation: 1,
      components: false,
      timeoutMs: 60_000,
      plan: 'exact',
    };
    const order = Uint32Array.from({ length: options.chunks }, (_, chunk) => chunk);
    const ratios: number[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const bare = await engine.timeKernel(
        { query, offsets, dim: options.dim, components: false },
        record,
        order,
        repeats,
      );
      let fastest = Number.POSITIVE_INFINITY;
      for (let repeat = 0; repeat < repeats; repeat++) {
        const start = performance.now();
        const { candidateCount } = await index.search(search);
        fastest = Math.min(fastest, performance.now() - start);
        if (candidateCount !== options.chunks) throw new Error(`only ${candidateCount} chunks were scored`);
      }
      ratios.push(fastest / bare.wallMs);
    }
    index.close();
    return ratios;
  } finally {
    engine.close();
  }
}

function randomRecord({ dim, chunks, seed }: AddonOverheadOptions): NativeRecord {
  const random = seededRandom(seed);
  const chunkRows = Uint32Array.from({ length: chunks }, (_, chunk) => rowsOf(chunk));
  const rows = sum([...chunkRows]);
  return {
    versionId: 1,
    chunkRows,
    vectors: Int8Array.from({ length: rows * dim }, () => Math.floor(random() * 255) - 127),
    scales: new Uint16Array(rows).fill(scaleOfOneHundredth),
    terms: new Uint8Array(0),
  };
}
