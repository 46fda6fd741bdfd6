/**
 * A process that is killed while it builds codes: four segments stand in the directory that its argument names, two have
 * their codes, the third is being encoded.
 */
import path from 'node:path';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import { createEngine } from '../../src/index/engine/native.ts';
import { Clusters, columns, noLifespans } from './sample.ts';

const [directory = '', records = ''] = process.argv.slice(2);
const clusters = new Clusters(seededRandom(3), 32, 50);
const engine = createEngine({ threads: 1, kernel: 'auto' });
const index = engine.createIndex({ dim: 32, exactTokenVectorsMax: 0 });
for (let segmentId = 1; segmentId <= 4; segmentId++) {
  await index.createSegment(segmentId, path.join(directory, `${segmentId}.seg`));
  const numbers = Array.from({ length: Number(records) }, (_, record) => record);
  for (const record of numbers) {
    await index.append(segmentId, clusters.record(segmentId * numbers.length + record, [10]));
  }
  index.publish(segmentId, columns(segmentId, numbers), noLifespans);
  await index.seal(segmentId);
}
await index.buildCodes(1);
await index.buildCodes(2);
void index.buildCodes(3);
process.kill(process.pid, 'SIGKILL');
