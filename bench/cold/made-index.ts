/** An index of made token vectors, written and merged as a node does it, without an encoder. */
import type { SharedServices } from '../../deploy/local/cluster.ts';
import type { ClusterCatalog } from '../../src/catalog/cluster-contract.ts';
import { defaultIndexSettings } from '../../src/index/index-settings.ts';
import { openNodeIndex } from '../cluster/node-index.ts';
import { month } from '../cluster/target.ts';
import { seededRandom } from '../lib/seeded-random.ts';

export interface MadeIndex {
  readonly tenantId: string;
  readonly indexId: string;
  readonly directory: string;
  readonly tokenVectors: number;
}

/** The default model's. */
const dim = 128;
const documentRows = 128;
/** Documents of a commit. */
const batch = 4_000;
/** Vectors of documents are among these, in groups that lie near each other. */
const poolRows = 65_536;
const groupRows = 16;
/** Half-precision bits of 1/400: rows of this length have about unit norm. */
const scaleBits = 0x191a;

export async function fillIndex(
  services: Pick<SharedServices, 'environment'>,
  catalog: ClusterCatalog,
  { tenantId, indexId, directory, tokenVectors }: MadeIndex,
): Promise<void> {
  await using index = await openNodeIndex(services, {
    catalog,
    indexId,
    dim,
    directory,
    threads: 0,
    settings: { ...defaultIndexSettings, copyBytesPerSecond: 2 ** 30 },
  });
  const random = seededRandom(1);
  const pool = makePool(random);
  const documentsInAll = Math.ceil(tokenVectors / documentRows);
  for (let stored = 0; stored < documentsInAll; stored += batch) {
    const count = Math.min(batch, documentsInAll - stored);
    await index.write(async (writer) => {
      const ids = await catalog.allocateIds(count);
      for (const versionId of ids) {
        await writer.append({
          versionId,
          chunkRows: Uint32Array.of(documentRows),
          vectors: rowsOf(pool, random),
          scales: new Uint16Array(documentRows).fill(scaleBits),
          terms: new Uint8Array(),
        });
      }
      await writer.commit(({ locations, segments }) => ({
        tenantId,
        indexId,
        documents: ids.map((versionId, place) => ({
          ...locations[place]!,
          docId: `document ${versionId}`,
          versionId,
          metadata: '{}',
          chunkCount: 1,
          tokenVectors: documentRows,
        })),
        documentsMax: 2 ** 40,
        usage: { tenantId, month, requests: 1, documentUpserts: count, inputTokens: 1n },
        segments,
      }));
    });
  }
  await index.maintain();
}

function makePool(random: () => number): Int8Array {
  const pool = new Int8Array(poolRows * dim);
  const centre = new Float64Array(dim);
  for (let row = 0; row < poolRows; row += 1) {
    if (row % groupRows === 0) for (let at = 0; at < dim; at += 1) centre[at] = 120 * (random() - 0.5);
    for (let at = 0; at < dim; at += 1)
      pool[row * dim + at] = Math.round(centre[at]! + 30 * (random() - 0.5));
  }
  return pool;
}

function rowsOf(pool: Int8Array, random: () => number): Int8Array {
  const vectors = new Int8Array(documentRows * dim);
  for (let row = 0; row < documentRows; row += 1) {
    const from = Math.floor(random() * poolRows) * dim;
    vectors.set(pool.subarray(from, from + dim), row * dim);
  }
  return vectors;
}
