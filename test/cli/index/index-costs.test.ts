import path from 'node:path';
import { expect, it } from 'vitest';
import { costsOf, type SealedSegments } from '../../../src/cli/index/index-costs.ts';
import { createEngine } from '../../../src/index/engine/native.ts';
import { Clusters, columns, noLifespans, temporaryDirectory } from '../../native/sample.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';

const [dim, documents, rows] = [16, 400, 20];

it('says by which plan an index is searched, why, and what it keeps in memory', async () => {
  using directory = temporaryDirectory();
  const file = path.join(directory.path, '1.seg');
  const engine = createEngine({ threads: 1, kernel: 'auto' });
  const records = Array.from({ length: documents }, (_, record) => record);
  const index = engine.createIndex({ dim, exactTokenVectorsMax: 1 });
  const clusters = new Clusters(seededRandom(4), dim, 50);
  await index.createSegment(1, file);
  for (const record of records) await index.append(1, clusters.record(record, [rows]));
  index.publish(1, columns(1, records), noLifespans);
  await index.seal(1);
  const segment = { id: 1, indexId: 'i', blob: file, state: 'sealed', recordsReferenced: documents } as const;
  const state = {
    generation: 1,
    segments: [segment],
    versions: {
      ...columns(1, records),
      versionIds: Float64Array.from(records),
      born: new Float64Array(documents).fill(1),
      died: new Float64Array(documents),
    },
  };
  const costs = (exactTokenVectorsMax: number, hasCodes: boolean) => {
    const own = { name: file, key: file, bytes: 0, open: () => Promise.resolve(file) };
    const sealed: SealedSegments = {
      shape: { dim, rowBits: 8 },
      segments: [{ ...segment, own }],
      chunks: documents,
      hasCodes,
    };
    return costsOf({ engine, exactTokenVectorsMax }, state, sealed);
  };
  try {
    const without = await costs(1, false);
    expect(without).toMatchObject({ plan: 'exact', reason: 'there are no codes (yet)' });
    await index.buildCodes(1);
    const coded = await costs(1, true);
    expect(['codes', 'lists']).toContain(coded.plan);
    expect(coded.reason).toMatch(/400 chunks/);
    expect(coded.memoryBytes).toBeGreaterThan(without.memoryBytes);
    expect(await costs(documents * rows, true)).toMatchObject({
      plan: 'exact',
      reason: expect.stringContaining('exact scan'),
    });
    // Nothing stays open.
    expect(await costs(1, true)).toEqual(coded);
  } finally {
    index.close();
    engine.close();
  }
});
