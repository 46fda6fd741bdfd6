/** An index of the real engine whose texts change, and whose searches are measured by the real `IndexRecall`. */
import path from 'node:path';
import { onTestFinished } from 'vitest';
import {
  createEngine,
  type NativeIndex,
  type NativeRecord,
  type NativeSearch,
} from '../../../src/index/engine/native.ts';
import { foundShare } from '../../../src/index/recall/estimate.ts';
import { IndexRecall } from '../../../src/index/recall/index-recall.ts';
import { columns, temporaryDirectory } from '../../native/sample.ts';
import { measuresAll } from './simulated-index.ts';

export interface Texts {
  readonly dim: number;
  readonly rowBits: number;
  readonly records: number;
  record(versionId: number, at: number): NativeRecord;
  query(): Float32Array;
}

/** Each change writes one segment. */
export class ChangingIndex {
  readonly recall: IndexRecall;
  readonly #native: NativeIndex;
  readonly #directory = temporaryDirectory();
  /** The live records of each segment. */
  readonly #live = new Map<number, readonly number[]>();
  readonly #dim: number;
  #generation = 0;

  constructor({ dim, rowBits }: Pick<Texts, 'dim' | 'rowBits'>) {
    const engine = createEngine({ threads: 2, kernel: 'auto' });
    onTestFinished(() => {
      engine.close();
      this.#directory[Symbol.dispose]();
    });
    const native = engine.createIndex({ dim, rowBits, exactTokenVectorsMax: 10 });
    this.#native = native;
    this.#dim = dim;
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
    const { fitted } = await this.#native.buildCodes(segmentId);
    if (!fitted) return;
    for (const segment of this.#native.segments())
      if (segment.codesOutdated) await this.#native.buildCodes(segment.segmentId);
  }

  async measure(count: number, query: () => Float32Array): Promise<void> {
    for (let search = 1; search <= count; search += 1) {
      if (this.recall.chooses('codes')) await this.recall.measure(this.#searchOf(query()));
      if (search % 100 === 0) {
        const { breadth, report } = this.recall;
        console.log(`${search} measured: recall ${report?.at10.mean.toFixed(4)} with ${breadth.toFixed(2)}`);
      }
    }
  }

  /** The recall with the present breadth, by exhaustive searches. */
  async truth(queries: readonly Float32Array[]): Promise<number> {
    const { breadth } = this.recall;
    let shares = 0;
    for (const query of queries) {
      const asked = { ...this.#searchOf(query), breadth };
      const found = await this.#native.search(asked);
      const exact = await this.#native.search({ ...asked, plan: 'exact' });
      if (found.plan === 'exact') throw new Error('this search scored every chunk');
      shares += foundShare(found.scores, exact.scores, 10);
    }
    console.log(
      `exhaustive searches: recall ${(shares / queries.length).toFixed(4)} with ${breadth.toFixed(2)}`,
    );
    return shares / queries.length;
  }

  #searchOf(query: Float32Array): NativeSearch {
    return {
      query,
      offsets: new Float32Array(query.length / this.#dim),
      topK: 10,
      candidateK: 200,
      generation: this.#generation,
      components: false,
      timeoutMs: 60_000,
    };
  }
}
