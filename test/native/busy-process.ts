/**
 * A process that ends with work in flight in the way its first argument names: `exit` calls process.exit,
 * `return` lets the work finish, `terminate` ends a worker thread that is busy. Prints `done` as its last act.
 */
import { once } from 'node:events';
import path from 'node:path';
import { Worker, isMainThread } from 'node:worker_threads';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import { createEngine } from '../../src/index/engine/native.ts';
import { Clusters, columns, noLifespans, temporaryDirectory } from './sample.ts';

/** Searches, syncs, appends, a verification and codes: in flight when it resolves, settled when `work` does. */
async function startWork(): Promise<{ readonly work: Promise<unknown> }> {
  using directory = temporaryDirectory();
  const clusters = new Clusters(seededRandom(1), 64, 50);
  const engine = createEngine({ threads: 2, kernel: 'auto' });
  const index = engine.createIndex({ dim: 64, exactTokenVectorsMax: 0 });
  await index.createSegment(1, path.join(directory.path, '1.seg'));
  await index.createSegment(2, path.join(directory.path, '2.seg'));
  for (let version = 0; version < 1_500; version++) await index.append(1, clusters.record(version, [10]));
  index.publish(
    1,
    columns(
      1,
      Array.from({ length: 1_500 }, (_, record) => record),
    ),
    noLifespans,
  );
  await index.seal(1);
  const record = clusters.record(9_999, [2_000]);
  const work = Promise.all([
    ...Array.from({ length: 1_500 }, (_, number) => index.verifyRecord(1, number)),
    ...Array.from({ length: 50 }, () => index.search(clusters.search(1))),
    ...Array.from({ length: 10 }, () => index.append(2, record)),
    ...Array.from({ length: 10 }, () => index.sync(2)),
    engine.score({ ...clusters.search(1), dim: 64, components: true }, record),
  ]);
  return { work };
}

async function terminateBusyWorker(): Promise<void> {
  const worker = new Worker(new URL(import.meta.url), { argv: ['worker'], stdout: true });
  await once(worker.stdout, 'data'); // it is busy
  await worker.terminate();
}

const mode = process.argv[2];
if (isMainThread && mode === 'terminate') {
  await terminateBusyWorker();
  // The addon works on in this thread, and in another worker.
  await terminateBusyWorker();
}
const { work } = await startWork();
if (isMainThread) {
  if (mode !== 'exit') await work;
  process.stdout.write('done\n');
  if (mode === 'exit') process.exit(0);
} else {
  process.stdout.write('busy\n');
  await work;
}
