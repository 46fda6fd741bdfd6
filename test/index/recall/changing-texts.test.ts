/**
 * An index of the real engine whose texts change: short ones, whose codes say nearly all of them, then four fifths long ones of another kind. The
 * breadth brings the recall back into the band, by exhaustive searches that the controller does not see.
 */
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createEngine, type NativeSearch } from '../../../src/index/engine/native.ts';
import { safeBreadth } from '../../../src/index/recall/breadth.ts';
import { foundShare } from '../../../src/index/recall/estimate.ts';
import { IndexRecall } from '../../../src/index/recall/index-recall.ts';
import { Blur, columns, noLifespans, temporaryDirectory } from '../../native/sample.ts';
import { rounds } from '../../rounds.ts';
import { announceRandom } from '../../support/running/random.ts';
import { measuresAll } from './simulated-index.ts';

const dim = 64;
const short = { rows: 8, spread: 0.8 };
const long = { rows: 16, spread: rounds({ short: 1.1, nightly: 1.05 }) };
const records = rounds({ short: 3_000, nightly: 8_000 });
const truths = rounds({ short: 400, nightly: 1_000 });

it('recall is back in the band after at most 600 measured searches', { timeout: 900_000 }, async () => {
  const random = announceRandom('changing texts');
  const directory = temporaryDirectory();
  const engine = createEngine({ threads: 2, kernel: 'auto' });
  onTestFinished(() => {
    engine.close();
    directory[Symbol.dispose]();
  });
  const native = engine.createIndex({ dim, exactTokenVectorsMax: 10 });
  const blur = new Blur(() => random.next(), dim);
  const add = async (segmentId: number, count: number, { rows, spread }: typeof short): Promise<void> => {
    await native.createSegment(segmentId, path.join(directory.path, `${segmentId}.seg`));
    const numbers = Array.from({ length: count }, (_, record) => record);
    for (const record of numbers) {
      await native.append(segmentId, blur.record(segmentId * 1_000_000 + record, rows, spread));
    }
    native.publish(segmentId, columns(segmentId, numbers), noLifespans);
    await native.seal(segmentId);
    await native.buildCodes(segmentId);
  };
  const recall = new IndexRecall({
    measuring: measuresAll(),
    segments: () => native.segments(),
    ask: (search) => native.search(search),
    moves: () => 0,
    onMove: ({ from, to, at10 }) =>
      console.log(`breadth ${from.toFixed(2)} to ${to.toFixed(2)}: recall ${at10.mean.toFixed(4)}`),
  });
  const searchOf = (generation: number, kind: () => typeof short): NativeSearch => ({
    query: blur.query(16, kind().spread),
    offsets: new Float32Array(16),
    topK: 10,
    candidateK: 200,
    generation,
    components: false,
    timeoutMs: 60_000,
  });
  const measure = async (count: number, generation: number, kind: () => typeof short): Promise<void> => {
    for (let search = 0; search < count; search += 1) {
      if (recall.chooses('codes')) await recall.measure(searchOf(generation, kind));
    }
  };
  const truth = async (breadth: number, generation: number, kind: () => typeof short): Promise<number> => {
    let shares = 0;
    for (let search = 0; search < truths; search += 1) {
      const asked = { ...searchOf(generation, kind), breadth };
      const [found, exact] = await Promise.all([
        native.search(asked),
        native.search({ ...asked, plan: 'exact' }),
      ]);
      expect(found.plan).not.toBe('exact');
      shares += foundShare(found.scores, exact.scores, 10);
    }
    return shares / truths;
  };

  await add(1, records, short);
  await measure(300, 1, () => short);
  const narrow = recall.breadth;
  expect(narrow).toBeLessThan(safeBreadth);
  await add(2, 4 * records, long);
  const mixed = (): typeof short => (random.next() < 0.8 ? long : short);
  const changed = await truth(narrow, 2, mixed);
  await measure(600, 2, mixed);
  const back = await truth(recall.breadth, 2, mixed);
  console.log(`recall ${changed} with breadth ${narrow}, then ${back} with ${recall.breadth}`);
  expect(changed).toBeLessThan(0.975);
  expect(recall.breadth).toBeGreaterThan(narrow);
  // The band, and twice the error of so many truths.
  const error = 0.08 / Math.sqrt(truths);
  expect(back).toBeGreaterThan(0.98 - 2 * error);
  expect(back).toBeLessThan(0.99 + 2 * error);
});
