/**
 * An index of the real engine whose texts change: short ones, whose codes say nearly all of them, then four fifths long ones of another kind. At last
 * others replace all of them. The breadth brings the recall back into the band, by exhaustive searches that the controller does not see.
 *
 * `TEST_CHANGING_EMBEDDINGS=SHORT,LONG,OTHER` names embeddings of real text (`npm run bench -- search-embed`). Those of another model have as many
 * dimensions. Without it vectors are generated, and the others lie around other centres.
 */
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { documentsOf, rowsOf } from '../../../bench/search/corpus.ts';
import { openEmbeddings } from '../../../bench/search/embedding-directory.ts';
import {
  createEngine,
  type NativeIndex,
  type NativeRecord,
  type NativeSearch,
} from '../../../src/index/engine/native.ts';
import { breadthMin, safeBreadth } from '../../../src/index/recall/breadth.ts';
import { foundShare } from '../../../src/index/recall/estimate.ts';
import { IndexRecall } from '../../../src/index/recall/index-recall.ts';
import { Blur, columns, temporaryDirectory } from '../../native/sample.ts';
import { rounds } from '../../rounds.ts';
import { announceRandom, type Random } from '../../support/running/random.ts';
import { measuresAll } from './simulated-index.ts';

const embeddings = process.env['TEST_CHANGING_EMBEDDINGS']?.split(',');
const records = rounds({ short: 3_000, nightly: 8_000 });
const truths = rounds({ short: 400, nightly: 1_000 });
/** Twice the error of so many truths. */
const error = 0.16 / Math.sqrt(truths);

interface Texts {
  readonly dim: number;
  readonly rowBits: number;
  readonly records: number;
  record(versionId: number, at: number): NativeRecord;
  query(): Float32Array;
}

it('recall is back in the band after at most 600 measured searches', { timeout: 1_800_000 }, async () => {
  const random = announceRandom('changing texts');
  const [short, long, other] =
    embeddings?.map((directory) => realTexts(directory, random)) ?? generatedTexts(random);
  const index = new ChangingIndex(short!);
  const expectBand = async (texts: () => Texts): Promise<void> => {
    const found = await index.truth(texts);
    expect(found).toBeGreaterThan(0.98 - error);
    if (index.recall.breadth > breadthMin) expect(found).toBeLessThan(0.99 + error);
  };
  await index.replace(short!, 0);
  await index.measure(300, () => short!);
  const narrow = index.recall.breadth;
  expect(narrow).toBeLessThan(safeBreadth);

  await index.replace(long!, 0.8);
  const mixed = (): Texts => (random.next() < 0.8 ? long! : short!);
  const changed = await index.truth(mixed);
  await index.measure(600, mixed);
  await expectBand(mixed);
  if (embeddings === undefined) {
    expect(changed).toBeLessThan(0.975);
    expect(index.recall.breadth).toBeGreaterThan(narrow);
  }

  await index.replace(other!, 1);
  await index.truth(() => other!);
  await index.measure(600, () => other!);
  await expectBand(() => other!);
});

/** Each change writes one segment. */
class ChangingIndex {
  readonly recall: IndexRecall;
  readonly #native: NativeIndex;
  readonly #directory = temporaryDirectory();
  /** The live records of each segment. */
  readonly #live = new Map<number, readonly number[]>();
  #generation = 0;

  constructor({ dim, rowBits }: Texts) {
    const engine = createEngine({ threads: 2, kernel: 'auto' });
    onTestFinished(() => {
      engine.close();
      this.#directory[Symbol.dispose]();
    });
    const native = engine.createIndex({ dim, rowBits, exactTokenVectorsMax: 10 });
    this.#native = native;
    this.recall = new IndexRecall({
      measuring: measuresAll(),
      segments: () => native.segments(),
      ask: (search) => native.search(search),
      moves: () => 0,
      onMove: ({ from, to, at10 }) =>
        console.log(`breadth ${from.toFixed(2)} to ${to.toFixed(2)}: recall ${at10.mean.toFixed(4)}`),
    });
  }

  /** Adds all of these texts and deletes a share of the others. */
  async replace(texts: Texts, share: number): Promise<void> {
    const segmentId = (this.#generation += 1);
    const numbers = Array.from({ length: texts.records }, (_, record) => record);
    await this.#native.createSegment(segmentId, path.join(this.#directory.path, `${segmentId}.seg`));
    for (const record of numbers)
      await this.#native.append(segmentId, texts.record(segmentId * 1_000_000 + record, record));
    const died = [...this.#live].map(([of, live]) =>
      columns(of, live.slice(0, Math.round(live.length * share))),
    );
    for (const [of, live] of this.#live) this.#live.set(of, live.slice(Math.round(live.length * share)));
    this.#native.publish(segmentId, columns(segmentId, numbers), {
      segmentIds: Float64Array.from(died.flatMap(({ segmentIds }) => [...segmentIds])),
      records: Uint32Array.from(died.flatMap(({ records: of }) => [...of])),
    });
    this.#live.set(segmentId, numbers);
    await this.#native.seal(segmentId);
    await this.#native.buildCodes(segmentId);
  }

  async measure(count: number, texts: () => Texts): Promise<void> {
    for (let search = 1; search <= count; search += 1) {
      if (this.recall.chooses('codes')) await this.recall.measure(this.#searchOf(texts()));
      if (search % 100 === 0) {
        const { breadth, report } = this.recall;
        console.log(`${search} measured: recall ${report?.at10.mean.toFixed(4)} with ${breadth.toFixed(2)}`);
      }
    }
  }

  /** The recall with the present breadth, by exhaustive searches. */
  async truth(texts: () => Texts): Promise<number> {
    const { breadth } = this.recall;
    let shares = 0;
    for (let search = 0; search < truths; search += 1) {
      const asked = { ...this.#searchOf(texts()), breadth };
      const found = await this.#native.search(asked);
      const exact = await this.#native.search({ ...asked, plan: 'exact' });
      if (found.plan === 'exact') throw new Error('this search scored every chunk');
      shares += foundShare(found.scores, exact.scores, 10);
    }
    console.log(`exhaustive searches: recall ${(shares / truths).toFixed(4)} with ${breadth.toFixed(2)}`);
    return shares / truths;
  }

  #searchOf(texts: Texts): NativeSearch {
    const query = texts.query();
    return {
      query,
      offsets: new Float32Array(query.length / texts.dim),
      topK: 10,
      candidateK: 200,
      generation: this.#generation,
      components: false,
      timeoutMs: 60_000,
    };
  }
}

function realTexts(directory: string, random: Random): Texts {
  const corpus = openEmbeddings(directory, undefined);
  const { dim, rowBits } = corpus;
  return {
    dim,
    rowBits,
    records: documentsOf(corpus),
    record: (versionId, at) => ({
      versionId,
      chunkRows: rowsOf(corpus, at),
      ...corpus.read(at, at + 1),
      terms: new Uint8Array(0),
    }),
    query: () => random.pick(corpus.queries).vectors,
  };
}

function generatedTexts(random: Random): readonly Texts[] {
  const dim = 64;
  const [blur, other] = [new Blur(() => random.next(), dim), new Blur(() => random.next(), dim)];
  const of = (centres: Blur, count: number, rows: number, spread: number): Texts => ({
    dim,
    rowBits: 8,
    records: count,
    record: (versionId) => centres.record(versionId, rows, spread),
    query: () => centres.query(16, spread),
  });
  const wide = rounds({ short: 1.1, nightly: 1.05 });
  return [of(blur, records, 8, 0.8), of(blur, 4 * records, 16, wide), of(other, 4 * records, 16, wide)];
}
