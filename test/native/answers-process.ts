/** Prints the kernel that the engine chose here, and what it answers by every plan from a small index of fixed vectors. */
import path from 'node:path';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import { createEngine } from '../../src/index/engine/native.ts';
import { Clusters, columns, noLifespans, temporaryDirectory, term } from './sample.ts';

using directory = temporaryDirectory();
const clusters = new Clusters(seededRandom(1), 24, 20);
const engine = createEngine({ threads: 1, kernel: 'auto' });
const index = engine.createIndex({ dim: 24, exactTokenVectorsMax: 0 });
await index.createSegment(1, path.join(directory.path, '1.seg'));
await index.createSegment(2, path.join(directory.path, '2.seg'));
const records = Array.from({ length: 60 }, (_, record) => record);
for (const version of records) await index.append(1, clusters.record(version, [5, 3], term(version % 3)));
index.publish(1, columns(1, records), noLifespans);
await index.seal(1);
await index.buildCodes(1);
await index.buildPostings(1);
await index.copyRecords(1, Uint32Array.of(7), 2);

const answers = [];
for (const plan of ['exact', 'codes', 'lists', 'graph'] as const) {
  for (const filterTerms of [undefined, term(2)]) {
    const search = clusters.search(1, {
      plan,
      candidateK: 20,
      components: true,
      ...(filterTerms && { filterTerms }),
    });
    const { timings: _, ...answer } = await index.search(search);
    answers.push(answer);
  }
}
const { query, offsets } = clusters.search(1);
const transient = await engine.score(
  { query, offsets, dim: 24, components: true },
  clusters.record(1, [4, 9]),
);
console.log(
  JSON.stringify({
    kernel: engine.info.kernel,
    verified: await index.verifyRecord(1, 7),
    answers,
    transient,
  }),
);
index.close();
engine.close();
