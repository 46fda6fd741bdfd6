import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import {
  createEngine,
  type KernelName,
  type NativeSearch,
  type NativeSearchResult,
} from '../../src/index/engine/native.ts';
import { Blur, Clusters, columns, noLifespans, temporaryDirectory, term } from './sample.ts';

const directory = temporaryDirectory();
let files = 0;
const newPath = () => path.join(directory.path, `${(files += 1)}.seg`);
const engine = createEngine({ threads: 2, kernel: 'auto' });
afterAll(() => {
  engine.close();
  directory[Symbol.dispose]();
});

const keys = (result: NativeSearchResult) =>
  Array.from(result.versionIds, (version, i) => `${version}/${result.chunkIndexes[i]}`);

describe('kernels', () => {
  const supported = engine.info.kernels.filter((kernel) => kernel.supported).map((kernel) => kernel.name);

  it.each(supported)(
    'a forced %s is the one that scores, with the bits of scalar',
    async (kernel: KernelName) => {
      const clusters = new Clusters(seededRandom(3), 96, 30);
      const { query, offsets } = clusters.search(1);
      const chunks = clusters.record(1, [1, 40, 300]);
      const forced = createEngine({ threads: 1, kernel });
      expect(forced.info.kernel).toBe(kernel);
      const before = forced.kernelCalls();
      const request = { query, offsets, dim: 96, components: true };
      const result = await forced.score(request, chunks);
      const after = forced.kernelCalls();
      for (const name of supported) {
        expect(after[name]! - before[name]! > 0, name).toBe(name === kernel);
      }
      const scalar = createEngine({ threads: 1, kernel: 'scalar' });
      expect(result).toEqual(await scalar.score(request, chunks));
      const timed = await forced.timeKernel(request, chunks, Uint32Array.of(2, 0, 1), 3);
      expect([...timed.scores]).toEqual([result.scores[2], result.scores[0], result.scores[1]]);
      scalar.close();
      forced.close();
    },
  );

  it('an unsupported kernel is an error', () => {
    const missing = (['avx512vnni', 'avx2', 'avxvnni', 'amx', 'neon'] as const).filter(
      (name) => !supported.includes(name),
    );
    expect(missing.length).toBeGreaterThan(0);
    for (const kernel of missing) {
      expect(() => createEngine({ threads: 1, kernel })).toThrow(
        expect.objectContaining({ code: 'invalid_argument' }),
      );
    }
  });
});

describe('plans', () => {
  it('codes and lists find what an exhaustive search finds', async () => {
    const clusters = new Clusters(seededRandom(11), 64, 300);
    const index = engine.createIndex({ dim: 64, exactTokenVectorsMax: 1_000 });
    await index.createSegment(1, newPath());
    const count = 6_000; // more than the lists hand on
    for (let version = 0; version < count; version++) {
      await index.append(1, clusters.record(version, [8 + (version % 17)], term(version % 5)));
    }
    const all = Array.from({ length: count }, (_, record) => record);
    index.publish(1, columns(1, all), noLifespans);
    index.publish(2, noLifespans, columns(1, all.slice(0, 500)));
    await index.seal(1);
    const built = await index.buildCodes(1);
    expect(built).toMatchObject({ chunks: count, fitted: true });
    const [sealed] = index.segments();
    expect(sealed).toMatchObject({ state: 'sealed', centroids: built.centroids });
    expect(sealed!.derivedBytes).toBeGreaterThan(built.bytes + sealed!.postingBytes + built.centroids * 64);
    for (const filterTerms of [undefined, term(3)]) {
      const recall = { codes: 0, lists: 0, graph: 0 };
      for (let round = 0; round < 20; round++) {
        const search = clusters.search(2, filterTerms && { filterTerms });
        const truth = keys(await index.search({ ...search, plan: 'exact' }));
        for (const plan of ['codes', 'lists', 'graph'] as const) {
          const result = await index.search({ ...search, plan, components: true });
          expect(result.plan).toBe(plan);
          expect(result.candidateCount).toBe(search.candidateK);
          expect(result.candidateRanks).toHaveLength(result.versionIds.length);
          expect(
            Array.from(result.versionIds).every((id) => id >= 500 && (!filterTerms || id % 5 === 3)),
          ).toBe(true);
          const found = new Set(keys(result));
          recall[plan] += truth.filter((key) => found.has(key)).length / truth.length / 20;
        }
        const automatic = await index.search(search);
        expect(automatic.plan).toBe('codes');
      }
      expect(recall.codes).toBeGreaterThan(0.9);
      expect(recall.lists).toBeGreaterThan(0.9);
      expect(recall.graph).toBeGreaterThan(0.9);
    }
    index.close();
  });

  it('group by document: the documents of the best chunks, however few candidates they are asked among', async () => {
    const clusters = new Clusters(seededRandom(13), 64, 100);
    const index = engine.createIndex({ dim: 64, exactTokenVectorsMax: 1_000 });
    await index.createSegment(1, newPath());
    const count = 400;
    for (let version = 0; version < count; version++) {
      const chunks = Array.from({ length: 1 + (version % 15) }, () => 8);
      await index.append(1, clusters.record(version, chunks));
    }
    index.publish(
      1,
      columns(
        1,
        Array.from({ length: count }, (_, record) => record),
      ),
      noLifespans,
    );
    await index.seal(1);
    await index.buildCodes(1);
    const search = clusters.search(1);
    const all = await index.search({ ...search, topK: 10_000, plan: 'exact' });
    const chunksOf = Map.groupBy(keys(all), (key) => key.slice(0, key.indexOf('/')));
    const best = [...chunksOf.keys()];
    for (const topK of [1, 30, count, count + 1]) {
      const wanted = best.slice(0, topK).flatMap((id) => chunksOf.get(id)!.slice(0, 10));
      const exact = await index.search({ ...search, topK, plan: 'exact', grouped: true });
      expect(keys(exact)).toEqual(wanted);
      const few = await index.search({ ...search, topK, candidateK: 1, plan: 'codes', grouped: true });
      expect(new Set(few.versionIds).size).toBe(Math.min(topK, count));
      const many = await index.search({ ...search, topK, candidateK: 5_000, plan: 'codes', grouped: true });
      expect(keys(many)).toEqual(wanted);
    }
    index.close();
  });

  it('group by document: looks at 16 times candidate_k at most, and at no more when there is no other document', async () => {
    const clusters = new Clusters(seededRandom(17), 64, 100);
    const index = engine.createIndex({ dim: 64, exactTokenVectorsMax: 1_000 });
    await index.createSegment(1, newPath());
    const [documents, chunks] = [4, 2_000];
    const numbers = Array.from({ length: documents }, (_, record) => record);
    for (const version of numbers) {
      await index.append(
        1,
        clusters.record(
          version,
          Array.from({ length: chunks }, () => 3),
        ),
      );
    }
    index.publish(1, columns(1, numbers), noLifespans);
    await index.seal(1);
    await index.buildCodes(1);
    const search = { ...clusters.search(1), plan: 'codes', grouped: true } as const;
    const found = await index.search({ ...search, topK: 10, candidateK: 100 });
    const all = new Set(found.versionIds).size === documents;
    // All documents are found before the bound, or the bound ends it.
    expect(found.candidateCount).toBeLessThanOrEqual(1_600);
    const narrow = await index.search({ ...search, topK: documents, candidateK: 400 });
    expect(new Set(narrow.versionIds).size).toBe(documents);
    // It asks for more documents than there are: that widens nothing once all are found.
    const satisfied = await index.search({ ...search, topK: 100, candidateK: 400 });
    expect(satisfied.candidateCount).toBe(narrow.candidateCount);
    expect(all).toBe(true);
    index.close();
  });

  it('a search of more breadth finds more of the best, and one in the background the same', async () => {
    const blur = new Blur(seededRandom(6), 64);
    const index = engine.createIndex({ dim: 64, exactTokenVectorsMax: 10 });
    await index.createSegment(1, newPath());
    const versions = Array.from({ length: 2_000 }, (_, version) => version);
    for (const version of versions) await index.append(1, blur.record(version, 8, 1.5));
    index.publish(1, columns(1, versions), noLifespans);
    await index.seal(1);
    await index.buildCodes(1);
    const found = { narrow: 0, wide: 0 };
    for (let round = 0; round < 20; round++) {
      const search = {
        ...new Clusters(seededRandom(1), 64, 1).search(1, { topK: 10, candidateK: 20 }),
        query: blur.query(16, 1.5),
      };
      const truth = new Set(keys(await index.search({ ...search, plan: 'exact' })));
      const keysOf = async (more: Partial<NativeSearch>) =>
        keys(await index.search({ ...search, ...more, plan: 'codes' }));
      const narrow = await keysOf({ breadth: 0.25 });
      expect(await keysOf({ breadth: 0.25, background: true })).toEqual(narrow);
      found.narrow += narrow.filter((key) => truth.has(key)).length;
      found.wide += (await keysOf({ breadth: 4 })).filter((key) => truth.has(key)).length;
    }
    expect(found.wide).toBeGreaterThan(found.narrow);
    index.close();
  });

  it('a reopened segment answers as before, codes included', async () => {
    const clusters = new Clusters(seededRandom(5), 32, 50);
    const options = { dim: 32, exactTokenVectorsMax: 10 };
    const file = newPath();
    const first = engine.createIndex(options);
    await first.createSegment(1, file);
    const versions = Array.from({ length: 300 }, (_, version) => version);
    for (const version of versions) await first.append(1, clusters.record(version, [5, 3]));
    first.publish(1, columns(1, versions), noLifespans);
    const search = clusters.search(1, { components: true });
    await first.seal(1);
    await first.buildCodes(1);
    const [sealed] = first.segments();
    const before = await first.search({ ...search, plan: 'codes' });
    expect(before.plan).toBe('codes');
    first.close();
    const second = engine.createIndex(options);
    expect(sealed).toMatchObject({ state: 'sealed', records: 300, chunks: 600 });
    await second.openSegment(1, file, { recordsReferenced: 300, sealed: true });
    expect(second.segments()).toEqual([{ ...sealed, recordsLive: 0 }]);
    second.loadLifespans({
      ...columns(1, versions),
      versionIds: Float64Array.from(versions),
      born: new Float64Array(300).fill(1),
      died: new Float64Array(300),
    });
    const { timings: _, ...after } = await second.search({ ...search, plan: 'codes' });
    expect(before).toMatchObject(after);
    second.close();
  });
});

describe('lifespans', () => {
  const clusters = new Clusters(seededRandom(9), 8, 10);

  it('any sequence of upserts, deletes, seals, copies and reopenings shows each snapshot whole', async () => {
    const operation = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          kind: fc.constant('upsert' as const),
          doc: fc.nat(5),
          chunks: fc.integer({ min: 1, max: 3 }),
        }),
      },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete' as const), doc: fc.nat(5) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('seal' as const) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('compact' as const) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
    );
    interface Version {
      readonly doc: number;
      readonly chunks: number;
      readonly born: number;
      died: number;
      segment: number;
      record: number;
    }
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (operations) => {
        const options = { dim: 8, exactTokenVectorsMax: 0 };
        let index = engine.createIndex(options);
        const versions: Version[] = [];
        const paths = new Map<number, string>();
        const records = new Map<number, number>();
        let generation = 0;
        let active = 0;
        const startSegment = async () => {
          active += 1;
          paths.set(active, newPath());
          records.set(active, 0);
          await index.createSegment(active, paths.get(active)!);
        };
        const live = (doc: number) =>
          versions.findIndex((version) => version.doc === doc && version.died === Infinity);
        await startSegment();
        for (const step of operations) {
          if (step.kind === 'seal') {
            await index.seal(active);
            await startSegment();
          } else if (step.kind === 'compact') {
            const from = active;
            await index.seal(from);
            await startSegment();
            const moved = versions
              .map((version, id) => ({ version, id }))
              .filter(({ version }) => version.segment === from);
            const copies = await index.copyRecords(
              from,
              Uint32Array.from(moved, ({ version }) => version.record),
              active,
            );
            index.loadLifespans({
              ...columns(active, [...copies]),
              versionIds: Float64Array.from(moved, ({ id }) => id),
              born: Float64Array.from(moved, ({ version }) => version.born),
              died: Float64Array.from(moved, ({ version }) => (version.died === Infinity ? 0 : version.died)),
            });
            index.dropSegment(from);
            paths.delete(from);
            records.set(active, copies.length);
            moved.forEach(({ version }, i) => Object.assign(version, { segment: active, record: copies[i] }));
          } else if (step.kind === 'reopen') {
            await index.sync(active);
            index.close();
            index = engine.createIndex(options);
            for (const [id, file] of paths)
              await index.openSegment(id, file, {
                recordsReferenced: records.get(id)!,
                sealed: id !== active,
              });
            index.loadLifespans({
              segmentIds: Float64Array.from(versions, (version) => version.segment),
              records: Uint32Array.from(versions, (version) => version.record),
              versionIds: Float64Array.from(versions, (_, id) => id),
              born: Float64Array.from(versions, (version) => version.born),
              died: Float64Array.from(versions, (version) => (version.died === Infinity ? 0 : version.died)),
            });
          } else {
            const old = live(step.doc);
            generation += 1;
            let born = noLifespans;
            if (step.kind === 'upsert') {
              const rows = Array.from({ length: step.chunks }, (_, chunk) => chunk + 1);
              const { record } = await index.append(active, clusters.record(versions.length, rows));
              records.set(active, record + 1);
              born = columns(active, [record]);
              versions.push({
                doc: step.doc,
                chunks: step.chunks,
                born: generation,
                died: Infinity,
                segment: active,
                record,
              });
            }
            const dying = old < 0 ? undefined : versions[old]!;
            index.publish(generation, born, dying ? columns(dying.segment, [dying.record]) : noLifespans);
            if (dying) dying.died = generation;
          }
          for (const at of new Set([generation, Math.max(0, generation - 1), generation >> 1])) {
            const result = await index.search(clusters.search(at, { topK: 100 }));
            const expected = versions.flatMap((version, id) =>
              version.born <= at && at < version.died
                ? Array.from({ length: version.chunks }, (_, c) => `${id}/${c}`)
                : [],
            );
            expect(keys(result).toSorted()).toEqual(expected.toSorted());
          }
        }
        index.close();
      }),
      { numRuns: 40 },
    );
  });
});

describe('a record', () => {
  const dim = 96;
  const clusters = new Clusters(seededRandom(5), dim, 10);
  const records = [
    clusters.record(3, [2, 40, 1], term(1)),
    clusters.record(2 ** 52, [1]),
    clusters.record(1, [7, 7]),
  ];
  const open = async () => {
    const index = engine.createIndex({ dim, exactTokenVectorsMax: 0 });
    const file = newPath();
    await index.createSegment(1, file);
    for (const record of records) await index.append(1, record);
    return { index, file };
  };

  it('is read as it was appended, from an active segment and from a sealed one', async () => {
    const { index } = await open();
    for (const [number, record] of records.entries())
      expect(await index.readRecord(1, number)).toEqual(record);
    await index.seal(1);
    for (const [number, record] of records.entries())
      expect(await index.readRecord(1, number)).toEqual(record);
    await expect(index.readRecord(1, 3)).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(index.readRecord(2, 0)).rejects.toMatchObject({ code: 'invalid_argument' });
    index.close();
  });

  it('says where its chunks lie in their text, also as a copy and after a reopening', async () => {
    const { index, file } = await open();
    const target = newPath();
    await index.createSegment(2, target);
    const copies = await index.copyRecords(1, Uint32Array.of(0, 1, 2), 2);
    expect(await index.readRecord(2, copies[0]!)).toEqual(records[0]);
    const { chunkRanges: _, rowPlaces: __, ...unlocated } = clusters.record(4, [3]);
    await index.append(2, unlocated);
    expect(await index.readRecord(2, 3)).toEqual(unlocated);
    await index.seal(2);
    index.close();
    const opened = engine.createIndex({ dim, exactTokenVectorsMax: 0 });
    await opened.openSegment(1, file, { recordsReferenced: 3, sealed: false });
    await opened.openSegment(2, target, { recordsReferenced: 4, sealed: true });
    opened.publish(1, columns(2, [0, 1, 2, 3]), noLifespans);
    const search = clusters.search(1, { topK: 10 });
    const found = await opened.search({ ...search, components: true });
    const places = Array.from(found.versionIds, (version, place) => {
      const record = records.find(({ versionId }) => versionId === version);
      const chunk = found.chunkIndexes[place]!;
      const first = record?.chunkRows.subarray(0, chunk).reduce((sum, count) => sum + count, 0) ?? 0;
      return {
        range: record?.chunkRanges?.subarray(3 * chunk, 3 * chunk + 2) ?? Uint32Array.of(0, 0),
        rows: record?.rowPlaces?.slice(first, first + record.chunkRows[chunk]!) ?? new Uint8Array(),
      };
    });
    expect(places).toHaveLength(7);
    expect([...found.chunkRanges]).toEqual(places.flatMap(({ range }) => [...range]));
    expect(found.rowPlaces).toEqual(places.map(({ rows }) => rows));
    expect((await opened.search(search)).rowPlaces).toBeUndefined();
    opened.close();
  });

  it('that is not what was written is named, and not read', async () => {
    const { index, file } = await open();
    await index.seal(1);
    index.close();
    const bytes = await readFile(file);
    // In the vectors of the first one.
    bytes[64 + 1024]! ^= 1;
    await writeFile(file, bytes);
    const damaged = engine.createIndex({ dim, exactTokenVectorsMax: 0 });
    await damaged.openSegment(1, file, { recordsReferenced: 3, sealed: true });
    await expect(damaged.readRecord(1, 0)).rejects.toMatchObject({
      code: 'corrupt',
      segmentId: 1,
      record: 0,
    });
    expect(await damaged.readRecord(1, 1)).toEqual(records[1]);
    damaged.close();
  });
});
