/**
 * An index with so many centroids that searches find its lists by a graph over them. In service such an index has some 200
 * million token vectors. This one has few for each centroid, which only tests ask for.
 */
import path from 'node:path';
import { expect, it } from 'vitest';
import { createEngine, type NativeSearchResult } from '../../src/index/engine/native.ts';
import { Clusters, columns, noLifespans, temporaryDirectory } from '../native/sample.ts';
import { rounds } from '../rounds.ts';
import { seededRandom } from '../../bench/lib/seeded-random.ts';

const [dim, chunkRows, chunksOfRecord] = [48, 40, 10];
const records = rounds({ short: 1_000, nightly: 20_000 });
const searches = rounds({ short: 10, nightly: 100 });
const centroids = 140_000;
/** The thread that builds graphs gives way to all others. */
const timeoutMs = 1_800_000;

it(
  'searches of 131,072 centroids and more find lists by a graph, also after a restart',
  async () => {
    using directory = temporaryDirectory();
    const file = path.join(directory.path, '1.seg');
    const engine = createEngine({ threads: 2, kernel: 'auto' });
    try {
      const clusters = new Clusters(seededRandom(49), dim, 20_000);
      const options = { dim, exactTokenVectorsMax: 1, centroids };
      const first = engine.createIndex(options);
      const numbers = Array.from({ length: records }, (_, number) => number);
      await first.createSegment(1, file);
      for (const number of numbers) {
        await first.append(
          1,
          clusters.record(
            number,
            Array.from({ length: chunksOfRecord }, () => chunkRows),
          ),
        );
      }
      first.publish(1, columns(1, numbers), noLifespans);
      await first.seal(1);
      expect((await first.buildCodes(1)).centroids).toBeGreaterThanOrEqual(131_072);
      const asked = Array.from({ length: searches }, () =>
        clusters.search(1, { candidateK: 20, breadth: 0.25 }),
      );
      let found = 0;
      for (const search of asked) {
        const truth = keys(await first.search({ ...search, plan: 'exact' }));
        const result = await first.search(search);
        expect(result.plan).toBe('graph');
        found += keys(result).filter((key) => truth.includes(key)).length / truth.length / searches;
      }
      expect(found).toBeGreaterThan(0.9);
      const before = await Promise.all(asked.map(async (search) => keys(await first.search(search))));
      first.close();

      const second = engine.createIndex(options);
      await second.openSegment(1, file, { recordsReferenced: records, sealed: true });
      second.loadLifespans({
        ...columns(1, numbers),
        versionIds: Float64Array.from(numbers),
        born: new Float64Array(records).fill(1),
        died: new Float64Array(records),
      });
      // Its graph is being built. The thread that does it takes this afterwards.
      expect((await second.search(asked[0]!)).plan).toBe('lists');
      await second.buildPostings(1);
      const after = await Promise.all(asked.map((search) => second.search(search)));
      expect(after.map(({ plan }) => plan)).toEqual(asked.map(() => 'graph'));
      expect(after.map((result) => keys(result))).toEqual(before);
      second.close();
    } finally {
      engine.close();
    }
  },
  timeoutMs,
);

function keys({ versionIds, chunkIndexes }: NativeSearchResult): readonly string[] {
  return Array.from(versionIds, (version, i) => `${version}/${chunkIndexes[i]}`);
}
