import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import {
  createEngine,
  type NativeEngine,
  type NativeIndex,
  type NativeSearchRun,
  type NativeProbe,
} from '../../src/index/engine/native.ts';
import { Clusters, columns, noLifespans, temporaryDirectory } from './sample.ts';

const directory = temporaryDirectory();
const dim = 16;
const clusters = new Clusters(seededRandom(7), dim, 20);
let files = 0;
const newPath = () => path.join(directory.path, `${(files += 1)}.seg`);
const engine = createEngine({ threads: 2, kernel: 'auto' });
afterAll(() => {
  engine.close();
  directory[Symbol.dispose]();
});

const chunks = () => {
  const { chunkRows, vectors, scales } = clusters.record(1, [3, 2]);
  return { chunkRows, vectors, scales };
};
const score = () => {
  const { query, offsets } = clusters.search(1);
  return { query, offsets, dim, components: true };
};

/** A condition: all of nothing. */
const everything = Uint8Array.of(3, 0, 0);

/** Two spans, of one and of two terms. */
const spans = { terms: new Uint8Array(48), termCounts: Uint32Array.of(1, 2) };

/** So many spans of one term. */
function spansOf(count: number) {
  return { terms: new Uint8Array(16 * count), termCounts: new Uint32Array(count).fill(1) };
}

const counting = {
  generation: 1,
  timeoutMs: 1_000,
  fields: ['"a"'],
  limit: 1,
  distinctMax: 1,
  bytesMax: 1,
};

/** Every method of an index with good arguments; segment 1 is active with one record, segment 2 is free. */
const indexMethods: Readonly<Record<Exclude<keyof NativeIndex, 'close'>, (index: NativeIndex) => unknown>> = {
  createSegment: (index) => index.createSegment(2, newPath()),
  openSegment: (index) => index.openSegment(3, firstPath, { recordsReferenced: 0, sealed: false }),
  addParts: (index) => index.addParts(1, new Uint8Array(1)),
  append: (index) => index.append(1, clusters.record(5, [4])),
  sync: (index) => index.sync(1),
  seal: (index) => index.seal(1),
  buildCodes: (index) => index.buildCodes(1),
  buildPostings: (index) => index.buildPostings(1),
  copyRecords: (index) => index.copyRecords(1, Uint32Array.of(0), 2),
  readRecord: (index) => index.readRecord(1, 0),
  dropSegment: (index) => index.dropSegment(2),
  loadLifespans: (index) =>
    index.loadLifespans({
      ...columns(1, [0]),
      versionIds: Float64Array.of(1),
      born: Float64Array.of(1),
      died: Float64Array.of(0),
    }),
  copyLifespans: (index) => index.copyLifespans(1, Uint32Array.of(0), 1, 0),
  recordsSeenSince: (index) => index.recordsSeenSince(1, 1),
  publish: (index) => index.publish(1_000, columns(1, [0]), noLifespans),
  search: (index) => index.search(clusters.search(1)),
  beginSearch: (index) => index.beginSearch(clusters.search(1)).next(50),
  matching: (index) => index.matching({ generation: 1, timeoutMs: 1_000 }),
  tokenVectors: (index) => index.tokenVectors({ generation: 1, timeoutMs: 1_000 }),
  countSpans: (index) => index.countSpans({ generation: 1, timeoutMs: 1_000, ...spans }),
  recordsWithoutValues: (index) => index.recordsWithoutValues(1, 1, { where: everything }),
  addValues: (index) => index.addValues(1, { where: everything }, Uint32Array.of(0), ['{}']),
  saveValues: (index) => index.saveValues(1, { where: everything }),
  copyValues: (index) => index.copyValues(1),
  dropValues: (index) => index.dropValues(1),
  countValues: (index) => index.countValues(counting),
  findValue: (index) => index.findValue('{}', '"a"', Uint8Array.of(1)),
  verifyRecord: (index) => index.verifyRecord(1, 0),
  segments: (index) => index.segments(),
};

const engineMethods: Readonly<Record<Exclude<keyof TestedEngine, 'close'>, (open: TestedEngine) => unknown>> =
  {
    info: (open) => open.info,
    memory: (open) => open.memory(),
    memoryOwners: (open) => open.memoryOwners(),
    device: (open) => open.device(),
    createIndex: (open) => open.createIndex({ dim, exactTokenVectorsMax: 0 }),
    score: (open) => open.score(score(), chunks()),
    kernelCalls: (open) => open.kernelCalls(),
    timeKernel: (open) => open.timeKernel(score(), chunks(), Uint32Array.of(1, 0), 2),
    inspectCodes: (open) => open.inspectCodes(firstPath, true),
    inspectPostings: (open) => open.inspectPostings(firstPath, true),
    inspectColumn: (open) => open.inspectColumn(firstPath, true),
    inspectSegment: (open) =>
      open.inspectSegment(firstPath, { recordsReferenced: 0, firstRecord: 0, verifyBytesMax: 1 }),
  };

type TestedEngine = NativeEngine & NativeProbe;

let firstPath = '';

async function openIndex(from: NativeEngine): Promise<NativeIndex> {
  const index = from.createIndex({ dim, exactTokenVectorsMax: 0 });
  firstPath = newPath();
  await index.createSegment(1, firstPath);
  await index.append(1, clusters.record(1, [3]));
  return index;
}

const code = (expected: string) => expect.objectContaining({ code: expected });

describe('handle states', () => {
  it.each(Object.keys(indexMethods))('%s of a closed index throws `closed`', async (name) => {
    const index = await openIndex(engine);
    index.close();
    index.close();
    expect(() => indexMethods[name as keyof typeof indexMethods](index)).toThrow(code('closed'));
  });

  it.each(Object.keys(indexMethods))(
    '%s of an index whose engine is closed throws `closed`',
    async (name) => {
      const own = createEngine({ threads: 1, kernel: 'auto' });
      const index = await openIndex(own);
      own.close();
      expect(() => indexMethods[name as keyof typeof indexMethods](index)).toThrow(code('closed'));
      index.close();
    },
  );

  it.each(Object.keys(indexMethods))(
    '%s started before the index closes settles as if it had stayed open',
    async (name) => {
      const index = await openIndex(engine);
      const needsSealed = name === 'buildCodes' || name === 'buildPostings';
      if (needsSealed) await index.seal(1);
      if (name === 'copyRecords') await index.createSegment(2, newPath());
      if (name === 'openSegment') index.dropSegment(3);
      const work = Array.from(
        { length: name === 'search' || name === 'sync' || name === 'verify' ? 8 : 1 },
        () => indexMethods[name as keyof typeof indexMethods](index),
      );
      index.close();
      if (name === 'openSegment') {
        await expect(work[0]).rejects.toMatchObject({ code: 'corrupt' }); // its file belongs to segment 1
      } else {
        await Promise.all(work);
      }
    },
  );

  it.each(Object.keys(engineMethods))('%s of a closed engine throws `closed`', (name) => {
    const own = createEngine({ threads: 1, kernel: 'auto' });
    own.close();
    own.close();
    expect(() => engineMethods[name as keyof typeof engineMethods](own)).toThrow(code('closed'));
  });

  it.each(Object.keys(engineMethods))('%s of a busy engine works, and survives its close', async (name) => {
    const own = createEngine({ threads: 1, kernel: 'auto' });
    const before = own.score(score(), chunks());
    const work = engineMethods[name as keyof typeof engineMethods](own);
    own.close();
    await expect(Promise.all([before, work])).resolves.toHaveLength(2);
  });
});

describe('a search that gives way', () => {
  /** Gives way wherever it can. */
  const shortest = 0.001;

  async function filled(from = engine): Promise<NativeIndex> {
    const index = await openIndex(from);
    for (let version = 2; version < 200; version += 1)
      await index.append(1, clusters.record(version, [4, 2]));
    const lifespans = Array.from({ length: 199 }, (_, record) => record);
    index.publish(1, columns(1, lifespans), noLifespans);
    return index;
  }

  it('has the result of one that does not', async () => {
    const index = await filled();
    const search = clusters.search(1, { components: true, plan: 'exact' });
    const run = index.beginSearch(search);
    let slices = 1;
    let found = await run.next(shortest);
    for (; found === undefined; slices += 1) found = await run.next(shortest);
    expect(slices).toBeGreaterThan(6);
    const whole = await index.search(search);
    expect({ ...found, timings: undefined }).toEqual({ ...whole, timings: undefined });
    const long = await index.beginSearch(search).next(60_000);
    expect({ ...long, timings: undefined }).toEqual({ ...whole, timings: undefined });
    expect(() => run.next(shortest)).toThrow(code('closed'));
    run.close();
    index.close();
  });

  /** Asks for another slice: the code of the refusal, or '' if the slice before has ended. */
  async function again(run: NativeSearchRun): Promise<string> {
    try {
      await run.next(shortest);
      return '';
    } catch (error) {
      return (error as Error & { readonly code: string }).code;
    }
  }

  it('runs one slice at a time, and none once it, its index or its engine is closed', async () => {
    const own = createEngine({ threads: 1, kernel: 'auto' });
    const index = await filled(own);
    const begin = () => index.beginSearch(clusters.search(1, { plan: 'exact' }));
    const [closed, left, last, unused] = [begin(), begin(), begin(), begin()];
    expect(() => closed.next(0)).toThrow(code('invalid_argument'));
    // The slices of all wait for the one thread, so that most have not run when they are asked for again.
    const twice = Array.from({ length: 20 }, begin).map((run) => [run.next(shortest), again(run)] as const);
    await Promise.all(twice.flat());
    expect(await Promise.all(twice.map(([, second]) => second))).toContain('invalid_argument');
    const first = closed.next(shortest);
    closed.close();
    closed.close();
    expect(await first).toBeUndefined();
    expect(() => closed.next(shortest)).toThrow(code('closed'));
    expect(await left.next(shortest)).toBeUndefined();
    expect(await last.next(shortest)).toBeUndefined();
    index.close();
    expect(() => left.next(shortest)).toThrow(code('closed'));
    left.close();
    own.close();
    expect(() => last.next(shortest)).toThrow(code('closed'));
    last.close();
    // It is left to garbage collection.
    expect(() => unused.next(shortest)).toThrow(code('closed'));
    const bare = new (last.constructor as new () => NativeSearchRun)();
    expect(() => bare.next(shortest)).toThrow(code('closed'));
    bare.close();
  });

  it('ends at its deadline, which its slices share', async () => {
    const index = await filled();
    const run = index.beginSearch(clusters.search(1, { plan: 'exact', timeoutMs: 20 }));
    const slices = async () => {
      while ((await run.next(shortest)) === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await expect(slices()).rejects.toMatchObject({ code: 'deadline_exceeded' });
    expect(() => run.next(shortest)).toThrow(code('closed'));
    index.close();
  });
});

describe('arguments', () => {
  const record = clusters.record(1, [2, 3]);
  const search = clusters.search(1);
  const badRecords = {
    'no chunks': { chunkRows: new Uint32Array(0) },
    'an empty chunk': { chunkRows: Uint32Array.of(5, 0) },
    'too few rows': { chunkRows: Uint32Array.of(4) },
    'a fractional version': { versionId: 1.5 },
    'a negative version': { versionId: -1 },
    'an unsafe version': { versionId: 2 ** 53 },
    'short vectors': { vectors: new Int8Array(3) },
    'vectors of another type': { vectors: new Uint8Array(5 * dim) },
    'short scales': { scales: new Uint16Array(4) },
    'an infinite scale': { scales: new Uint16Array(5).fill(0x7c00) },
    'a scale that is no number': { scales: new Uint16Array(5).fill(0x7e01) },
    'half a term': { terms: new Uint8Array(8) },
    'rows that overflow': { chunkRows: Uint32Array.of(2 ** 32 - 1, 6) },
  };
  const badSearches = {
    'no query token': { query: new Float32Array(0), offsets: new Float32Array(0) },
    'too many query tokens': { query: new Float32Array(513 * dim), offsets: new Float32Array(513) },
    'a query of another size': { query: new Float32Array(dim) },
    'a query that is no number': { query: new Float32Array(search.query.length).fill(Number.NaN) },
    'an infinite offset': { offsets: new Float32Array(search.offsets.length).fill(Infinity) },
    'top_k 0': { topK: 0 },
    'a fractional top_k': { topK: 2.5 },
    'candidate_k 0': { candidateK: 0 },
    'a negative generation': { generation: -1 },
    'a generation past safe integers': { generation: 2 ** 60 },
    'no time': { timeoutMs: 0 },
    'time that is no number': { timeoutMs: Number.NaN },
    'an unknown plan': { plan: 'fast' },
    'no breadth': { breadth: 0 },
    'endless breadth': { breadth: Infinity },
    'a background that is no boolean': { background: 1 },
    'a torn term': { filterTerms: new Uint8Array(15) },
    'components that are no boolean': { components: 1 },
    'spans that are no object': { match: spans.terms },
    'spans without bonuses': { match: spans },
    'a bonus too few': { match: { ...spans, bonuses: Float32Array.of(1) } },
    'a negative bonus': { match: { ...spans, bonuses: Float32Array.of(1, -0.5) } },
    'an endless bonus': { match: { ...spans, bonuses: Float32Array.of(1, Infinity) } },
    'more spans than bits': {
      match: { ...spansOf(65), bonuses: new Float32Array(65) },
    },
    'terms of spans that were not counted': {
      match: { ...spansOf(2), termCounts: Uint32Array.of(1, 2), bonuses: new Float32Array(2) },
    },
  };

  it.each(
    Object.entries({
      'no spans': spansOf(0),
      'too many spans': spansOf(513),
      'a span without terms': { ...spansOf(1), termCounts: Uint32Array.of(1, 0) },
      'a span of nine terms': { ...spansOf(9), termCounts: Uint32Array.of(9) },
      'a torn term': { ...spans, terms: new Uint8Array(47) },
      'terms of another type': { ...spans, terms: new Int8Array(48) },
    }),
  )('countSpans refuses %s', async (_, bad) => {
    const index = await openIndex(engine);
    const request = { generation: 1, timeoutMs: 1_000, ...bad } as never;
    expect(() => index.countSpans(request)).toThrow(code('invalid_argument'));
    index.close();
  });

  it.each(Object.entries(badRecords))('append refuses %s', async (_, change) => {
    const index = await openIndex(engine);
    expect(() => index.append(1, { ...record, ...change } as never)).toThrow(code('invalid_argument'));
    index.close();
  });

  it.each(Object.entries(badSearches))('search refuses %s', async (_, change) => {
    const index = await openIndex(engine);
    expect(() => index.search({ ...search, ...change } as never)).toThrow(code('invalid_argument'));
    index.close();
  });

  it.each([0, 1025, -1, 1.5, Number.NaN, '16'])('createIndex refuses dim %s', (bad) => {
    expect(() => engine.createIndex({ dim: bad as number, exactTokenVectorsMax: 0 })).toThrow(
      code('invalid_argument'),
    );
  });

  it('calls without arguments are refused, not crashes', async () => {
    const index = (await openIndex(engine)) as unknown as Record<string, () => unknown>;
    for (const name of Object.keys(indexMethods)) {
      if (name === 'segments') continue;
      expect(() => index[name]!(), name).toThrow(code('invalid_argument'));
    }
    const bare = engine as unknown as Record<string, () => unknown>;
    for (const name of ['createIndex', 'score', 'timeKernel']) {
      expect(() => bare[name]!(), name).toThrow(code('invalid_argument'));
    }
    index['close']!();
  });

  it('segments and records that do not exist are refused', async () => {
    const index = await openIndex(engine);
    await expect(index.append(9, record)).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(index.sync(9)).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(index.createSegment(1, newPath())).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(index.copyRecords(1, Uint32Array.of(7), 1)).rejects.toMatchObject({
      code: 'invalid_argument',
    });
    await expect(index.buildCodes(1)).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(index.buildPostings(1)).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(
      index.openSegment(4, path.join(directory.path, 'absent'), { recordsReferenced: 0, sealed: false }),
    ).rejects.toMatchObject({
      code: 'io',
      errno: 2,
    });
    expect(() => index.publish(1, columns(1, [7]), noLifespans)).toThrow(code('invalid_argument'));
    expect(() => index.publish(1, columns(9, [0]), noLifespans)).toThrow(code('invalid_argument'));
    index.publish(4, columns(1, [0]), noLifespans);
    expect(() => index.publish(4, noLifespans, noLifespans)).toThrow(code('invalid_argument'));
    index.close();
  });

  it.each(['fast', 'AVX2', ''])('an engine refuses kernel %j', (kernel) => {
    expect(() => createEngine({ threads: 1, kernel: kernel as never })).toThrow(code('invalid_argument'));
  });
});
