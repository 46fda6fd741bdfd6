/** When the codebook of an index is fitted anew: as its texts become more, or others. */
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createEngine, type NativeIndex } from '../../../src/index/engine/native.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';
import { Blur, Clusters, columns, temporaryDirectory } from '../../native/sample.ts';

const directory = temporaryDirectory();
const engine = createEngine({ threads: 2, kernel: 'auto' });
afterAll(() => {
  engine.close();
  directory[Symbol.dispose]();
});

interface Texts {
  record: (versionId: number) => ReturnType<Clusters['record']>;
  query: () => Float32Array;
}

const clustered = (seed: number): Texts => {
  const clusters = new Clusters(seededRandom(seed), 64, 200);
  return { record: (version) => clusters.record(version, [10]), query: () => clusters.search(0).query };
};
const blurred = (seed: number, spread: number): Texts => {
  const blur = new Blur(seededRandom(seed), 64);
  return { record: (version) => blur.record(version, 10, spread), query: () => blur.query(16, spread) };
};

/** An index that gets a segment at a time, and has codes of all of them. */
class CodedIndex {
  readonly #name: string;
  readonly #native: NativeIndex;
  readonly #live: { readonly segmentId: number; readonly record: number }[] = [];
  #version = 0;
  #segments = 0;

  constructor(name: string, centroids?: number) {
    this.#name = name;
    this.#native = engine.createIndex({ dim: 64, exactTokenVectorsMax: 0, ...(centroids && { centroids }) });
  }

  /** Adds a segment of these texts in place of the `died` oldest ones. Whether a codebook was fitted. */
  async add(texts: Texts, records: number, died = 0): Promise<boolean> {
    const segmentId = (this.#segments += 1);
    await this.#native.createSegment(segmentId, path.join(directory.path, `${this.#name}-${segmentId}.seg`));
    const born = Array.from({ length: records }, (_, record) => ({ segmentId, record }));
    for (const _ of born) await this.#native.append(segmentId, texts.record((this.#version += 1)));
    const dead = this.#live.splice(0, died);
    this.#native.publish(segmentId, columns(segmentId, [...born.keys()]), {
      segmentIds: Float64Array.from(dead, (one) => one.segmentId),
      records: Uint32Array.from(dead, ({ record }) => record),
    });
    this.#live.push(...born);
    await this.#native.seal(segmentId);
    return (await this.#native.buildCodes(segmentId)).fitted;
  }

  outdated(): readonly number[] {
    return this.#native
      .segments()
      .flatMap(({ segmentId, codesOutdated }) => (codesOutdated ? [segmentId] : []));
  }

  /** Codes the outdated segments again. Whether a codebook was fitted. */
  async recode(): Promise<boolean> {
    let fitted = false;
    for (const segmentId of this.outdated()) {
      const built = await this.#native.buildCodes(segmentId);
      fitted ||= built.fitted;
    }
    return fitted;
  }

  /** The share of the exact best ten that codes find. */
  async recall(texts: Texts): Promise<number> {
    let found = 0;
    for (let round = 0; round < 10; round++) {
      const query = texts.query();
      const common = { generation: this.#segments, components: false, timeoutMs: 60_000 };
      const search = { ...common, query, offsets: new Float32Array(16), topK: 10, candidateK: 100 };
      const { versionIds } = await this.#native.search({ ...search, plan: 'codes' });
      const truth = await this.#native.search({ ...search, plan: 'exact' });
      found += truth.versionIds.filter((id) => versionIds.includes(id)).length / 100;
    }
    return found;
  }

  [Symbol.dispose](): void {
    this.#native.close();
  }
}

it('a codebook is fitted anew when the index has doubled or become another, and others are outdated then', async () => {
  using index = new CodedIndex('doubled');
  const [known, other] = [clustered(21), clustered(22)];
  expect(await index.add(known, 1_000)).toBe(true);
  expect(await index.add(known, 400)).toBe(false);
  expect(index.outdated()).toEqual([]);
  expect(await index.add(other, 400)).toBe(true);
  expect(index.outdated()).toEqual([1, 2]);
  for (const texts of [known, other]) expect(await index.recall(texts)).toBeGreaterThan(0.9);
  expect(await index.recode()).toBe(false);
  expect(index.outdated()).toEqual([]);
  expect(await index.add(known, 1_800)).toBe(true);
  expect(index.outdated()).toEqual([1, 2, 3]);
  for (const texts of [known, other]) expect(await index.recall(texts)).toBeGreaterThan(0.9);
});

it('texts that take the place of others bit by bit bring a new codebook, though the index becomes smaller', async () => {
  using index = new CodedIndex('replaced');
  const [known, other] = [clustered(21), clustered(22)];
  expect(await index.add(known, 1_000)).toBe(true);
  let fits = 0;
  for (let round = 0; round < 10; round++) {
    if (await index.add(other, 80, 100)) fits += 1;
    expect(await index.recode()).toBe(false);
  }
  expect(fits).toBeGreaterThan(0);
  expect(index.outdated()).toEqual([]);
  expect(await index.recall(other)).toBeGreaterThan(0.9);
});

it('two kinds of text that take turns bring no codebook for ever', async () => {
  using index = new CodedIndex('turns', 128);
  const kinds = [blurred(31, 0.5), blurred(32, 1.2)] as const;
  for (const texts of kinds) await index.add(texts, 1_000);
  const fitted: boolean[] = [];
  for (let round = 0; round < 12; round++) {
    fitted.push(await index.add(kinds[round % 2]!, 800, 800));
    await index.recode();
  }
  expect(fitted.slice(0, 6).filter(Boolean).length).toBeLessThan(4);
  expect(fitted.slice(6)).toEqual([false, false, false, false, false, false]);
});
