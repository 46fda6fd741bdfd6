/** A node that has nothing of an index searches it while the rest is being fetched. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { noRepeats } from '../../../src/index/ask-again.ts';
import type { NamedSegment } from '../../../src/contracts/index-state.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import type { Node, NodeOptions, NodeStage } from '../../support/cluster/node-stage.ts';
import { queryDatabase, serversMs } from '../../support/cluster/servers.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';
import { dim, query } from '../../support/stages/index-stage.ts';

const servers = useStageServers();

const documents = 4_000;
const rows = 100;
const partBytes = 256 * 1024;
const random = seededRandom(1);
/** The documents near a query are spread over the whole segment. */
const document = (place: number) => ({
  docId: `d${place}`,
  metadata: { kind: place % 7 },
  chunks: [
    Array.from({ length: rows }, () => Array.from({ length: dim }, () => Math.round(200 * random() - 100))),
  ],
});

let stage: NodeStage;
let warm: Node;
/** The one segment of the index, which has codes. */
let segment: { readonly blob: string; readonly bytes: number; readonly sha256: string };
let expected: Answer;
beforeAll(async () => {
  stage = await servers.openStage();
  warm = await stage.newNode();
  await warm.upsert(Array.from({ length: documents }, (_document, place) => document(place)));
  const hasCodes = (): boolean => {
    const [only, ...others] = warm.index().statistics().segments;
    return only !== undefined && only.centroids > 0 && others.length === 0;
  };
  while (!hasCodes()) await warm.index().maintain();
  const [row] = await queryDatabase(stage.url, "SELECT blob, files FROM segments WHERE state = 'sealed'");
  const { blob, files } = row as unknown as Pick<NamedSegment, 'blob' | 'files'>;
  const { bytes, sha256 } = files.find(({ ending }) => ending === '')!;
  segment = { blob, bytes, sha256 };
  if (segment.bytes < 16 * partBytes) throw new Error('most of it would come with its ends');
  expected = await search(warm);
  return () => stage[Symbol.asyncDispose]();
}, serversMs);

interface Answer {
  readonly versionIds: readonly number[];
  readonly scores: readonly number[];
}

async function search(node: Node, timeoutMs = 20_000, plan: 'codes' | 'exact' = 'codes'): Promise<Answer> {
  return node.index().read(async (reader) => {
    const { versionIds, scores } = await reader.search({
      query,
      offsets: new Float32Array(2),
      topK: 3,
      candidateK: 4,
      components: false,
      timeoutMs,
      plan,
    });
    return { versionIds: [...versionIds], scores: [...scores] };
  });
}

/** Parts are fetched to open the segment (the first and the last), for the first search, or after its answer (the rest). */
type Part = 'ends' | 'asked' | 'rest';

/** An object store between a node and the real one, which knows why each part of the segment is fetched. */
class Between {
  /** Bytes. */
  readonly seen: Record<Part, number> = { ends: 0, asked: 0, rest: 0 };
  whole = 0;
  isAnswered: () => boolean = () => false;
  /** Called before a part is fetched. */
  before: (part: Part) => Promise<void> = async () => undefined;
  /** Called with the bytes of a part. */
  after: (part: Part, content: Buffer) => void = () => undefined;

  of = (real: ObjectStore): ObjectStore => ({
    ...real,
    getFile: async (key, file, object) => {
      if (key === segment.blob) this.whole += 1;
      await real.getFile(key, file, object);
    },
    readPart: async (key, first, bytes) => {
      const isEnd = first === 0 || first + bytes === segment.bytes;
      const part = this.isAnswered() ? 'rest' : isEnd ? 'ends' : 'asked';
      await this.before(part);
      const content = await real.readPart(key, first, bytes);
      this.after(part, content);
      this.seen[part] += content.length;
      return content;
    },
  });

  /** Holds parts back until the returned function is called. */
  hold(held: Part): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.before = (part) => (part === held ? promise : Promise.resolve());
    onTestFinished(() => resolve());
    return resolve;
  }
}

async function newCold(between: Between, options: NodeOptions = {}): Promise<Node> {
  const node = await stage.newNode({ ...options, objects: between.of });
  const { plans } = node.storage;
  between.isAnswered = () => plans.codes > 0;
  return node;
}

/** The local files of the segment itself, with the disk space that they take. */
async function copies(node: Node): Promise<ReadonlyMap<string, number>> {
  const name = path.basename(segment.blob);
  const found = new Map<string, number>();
  for (const entry of await readdir(node.folder)) {
    if (entry !== name && !entry.startsWith(`${name}.part-`)) continue;
    const { blocks } = await stat(path.join(node.folder, entry));
    found.set(entry === name ? 'whole' : 'partial', blocks * 512);
  }
  return found;
}

async function expectWhole(node: Node): Promise<void> {
  await expect.poll(async () => [...(await copies(node)).keys()]).toEqual(['whole']);
}

describe('a cold node', () => {
  it('answers from codes and candidates before the rest has come, and the same afterwards', async () => {
    const between = new Between();
    const release = between.hold('rest');
    const cold = await newCold(between);
    expect(await search(cold)).toEqual(expected);
    expect((await copies(cold)).get('partial')).toBeLessThan(0.75 * segment.bytes);
    expect(between.seen.asked).toBeGreaterThan(0);
    const repeats = { ...cold.storage.repeats };
    expect(repeats).toEqual({ ...noRepeats(), parts: expect.toSatisfy((times: number) => times > 0) });
    release();
    await expectWhole(cold);
    expect(await search(cold)).toEqual(expected);
    expect(cold.storage.repeats).toEqual(repeats);
    expect(await search(cold, 20_000, 'exact')).toEqual(await search(warm, 20_000, 'exact'));
    await cold.reopen();
    expect(await search(cold)).toEqual(expected);
    expect(between.whole).toBe(0);
    expect(cold.errors).toEqual([]);
  });

  it('answers a search that needs all of the segment, while the rest is slow', async () => {
    const between = new Between();
    const cold = await newCold(between);
    const found = await Promise.all([search(cold), search(cold, 20_000, 'exact'), search(cold)]);
    expect(found).toEqual([expected, await search(warm, 20_000, 'exact'), expected]);
    await expectWhole(cold);
    const { ends, asked, rest } = between.seen;
    expect(ends + asked + rest, 'nothing is fetched twice').toBe(segment.bytes);
  });

  it('refuses a search that has no time to wait with 503, and goes on fetching', async () => {
    const between = new Between();
    const release = between.hold('asked');
    const cold = await newCold(between);
    // Long enough for a busy machine to come to the parts that are held.
    await expect(search(cold, 3_000)).rejects.toMatchObject({
      code: 'service_unavailable',
      message: 'the index is being fetched',
      retryAfterSeconds: 1,
    });
    release();
    expect(await search(cold)).toEqual(expected);
    expect(cold.errors).toEqual([]);
  });

  it('fails the search alone whose part is cut off, and fetches it again', async () => {
    const between = new Between();
    const cut = new ServiceError('service_unavailable', 'cut', { retryAfterSeconds: 1 });
    let cuts = { asked: 1, rest: 1, ends: 0 };
    between.before = async (part) => {
      if (cuts[part] === 0) return;
      cuts = { ...cuts, [part]: cuts[part] - 1 };
      throw cut;
    };
    const cold = await newCold(between);
    await expect(search(cold)).rejects.toBe(cut);
    expect(await search(cold)).toEqual(expected);
    await expectWhole(cold);
    expect(cuts).toEqual({ asked: 0, rest: 0, ends: 0 });
  });

  it('never answers from wrong bytes: the index is opened again', async () => {
    const between = new Between();
    let wrong = 1;
    between.after = (part, content) => {
      if (part !== 'asked' || wrong === 0) return;
      wrong -= 1;
      content.forEach((byte, at) => (content[at] = byte ^ 1));
    };
    const cold = await newCold(between);
    await expect(search(cold)).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringMatching('could not be read'),
    });
    expect(cold.index().usable).toBe(false);
    await cold.reopen();
    expect(await search(cold)).toEqual(expected);
    await expectWhole(cold);
    expect(cold.errors).toHaveLength(1);
  });

  it('keeps no copy with wrong bytes that nobody has read', async () => {
    const between = new Between();
    let wrong = 1;
    between.after = (part, content) => {
      if (part !== 'rest' || wrong === 0) return;
      wrong -= 1;
      content[content.length >> 1]! ^= 1;
    };
    const cold = await newCold(between);
    expect(await search(cold)).toEqual(expected);
    await expect.poll(() => cold.index().usable).toBe(false);
    expect(await copies(cold)).toEqual(new Map());
    expect(cold.errors).toMatchObject([{ message: expect.stringMatching('another SHA-256') }]);
    await cold.reopen();
    expect(await search(cold)).toEqual(expected);
    await expectWhole(cold);
  });

  it('does not take the partial file of a killed process for whole', async () => {
    const directory = path.join(await newDirectory(), 'cache');
    const killed = fork(path.join(import.meta.dirname, 'cold-process.ts'), {
      env: { ...process.env, TEST_CACHE: directory, TEST_BLOBS: stage.config.MAXSIMD_BLOBS_URL },
      execArgv: [],
    });
    onTestFinished(() => void killed.kill('SIGKILL'));
    killed.send(segment);
    await once(killed, 'message');
    killed.kill('SIGKILL');
    await once(killed, 'exit');
    const between = new Between();
    const release = between.hold('rest');
    const cold = await newCold(between, { directory });
    expect((await copies(cold)).get('partial')).toBeGreaterThan(segment.bytes / 4);
    expect(await search(cold)).toEqual(expected);
    expect(between.seen.asked).toBeGreaterThan(0);
    release();
    await expect.poll(async () => (await copies(cold)).has('whole')).toBe(true);
    expect(await search(cold, 20_000, 'exact')).toEqual(await search(warm, 20_000, 'exact'));
    expect(cold.errors).toEqual([]);
  });

  it('reads a record before the rest has come', async () => {
    const between = new Between();
    between.hold('rest');
    const cold = await newCold(between);
    const [placed] = await queryDatabase(
      stage.url,
      `SELECT s.id, record FROM placements JOIN segments s ON s.id = segment_id
        WHERE state = 'sealed' AND record = ${documents / 2}`,
    );
    const at = { segmentId: Number(placed!['id']), record: Number(placed!['record']) };
    expect(await cold.index().readRecord(at, 20_000)).toEqual(await warm.index().readRecord(at, 20_000));
    expect((await copies(cold)).get('partial')).toBeLessThan(0.75 * segment.bytes);
  });

  it('closes an index while it comes', async () => {
    const between = new Between();
    between.hold('rest');
    const cold = await newCold(between);
    await search(cold);
    const maintaining = cold.index().maintain();
    cold.index().close();
    await cold.index().settled();
    await maintaining;
    expect(cold.errors).toEqual([]);
  });

  it('merges nothing before it has all of it, and then what is due', async () => {
    const between = new Between();
    const release = between.hold('rest');
    const cold = await newCold(between, { settings: { sealedSegmentsMax: 1 } });
    expect(await search(cold)).toEqual(expected);
    await warm.upsert([document(0)]);
    await warm.upsert([document(1)]);
    const { layout } = (await stage.catalog.readHead(stage.indexId))!;
    const maintaining = cold.index().maintain();
    await search(cold);
    expect((await stage.catalog.readHead(stage.indexId))!.layout).toBe(layout);
    release();
    await maintaining;
    expect((await stage.catalog.readHead(stage.indexId))!.layout).toBeGreaterThan(layout);
    expect(await cold.found()).toEqual(await warm.found());
    expect(cold.errors).toEqual([]);
  });
});
