/** `maxsimd index verify`, `index inspect` and `cluster status` describe indexes that several nodes share. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { clusterStatus } from '../../../src/cli/cluster/status.ts';
import { withIndexes } from '../../../src/cli/index/index-access.ts';
import { inspectIndexes } from '../../../src/cli/index/index-inspect.ts';
import { verifyIndexes } from '../../../src/cli/index/index-verify.ts';
import { parseConfig } from '../../../src/app/config.ts';
import type { NamedSegment } from '../../../src/contracts/index-state.ts';
import { nodeReport } from '../../../src/service/node-report.ts';
import type { Node, NodeStage } from '../../support/cluster/node-stage.ts';
import { queryDatabase, serversMs } from '../../support/cluster/servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { errorBody, startLooseS3 } from '../../support/network/loose-s3.ts';
import { runJsonHere } from '../../support/commands/command-process.ts';
import { documentAt } from '../../support/stages/index-stage.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';

const servers = useStageServers();
let stage: NodeStage;
let segments: readonly NamedSegment[];
beforeAll(async () => {
  stage = await servers.openStage();
  // Merges at once, with codes; what comes later stays a segment of its own.
  const merger = await stage.newNode({ settings: { codesTokenVectorsMin: 4 } });
  await merger.upsert(['a', 'b', 'c', 'd'].map((docId, place) => documentAt(docId, place, { place })));
  await merger.index().maintain();
  await merger.close();
  const writer = await stage.newNode();
  await writer.upsert([documentAt('e', 5)]);
  await writer.upsert([documentAt('e', 6)]);
  await writer.close();
  const changes = await stage.catalog.changesSince({
    indexId: stage.indexId,
    generation: -1,
    segmentIds: [],
  });
  if (changes === undefined || changes === 'reopen') throw new Error('the index is there');
  ({ segments } = changes);
}, serversMs);
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const verify = (only?: string) => verifyIndexes(stage.config, { index: only });
const inspect = () =>
  withIndexes(stage.config, { index: stage.indexId }, (access) => inspectIndexes(access, undefined));
const problem = (file: string, words: RegExp) => ({
  index_id: stage.indexId,
  file,
  problem: expect.stringMatching(words),
});

/** Puts another object in its place for the time of `work`; `undefined`: none. */
async function damaged<T>(
  key: string,
  change: (content: Buffer) => Buffer | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const directory = await newDirectory();
  const [whole, other] = [path.join(directory, 'whole'), path.join(directory, 'other')];
  const segment = segments.find(({ blob }) => key.startsWith(blob))!;
  const file = segment.files.find(({ ending }) => segment.blob + ending === key)!;
  await stage.objects.getFile(key, whole, file);
  const changed = change(await readFile(whole));
  await stage.objects.remove(key);
  if (changed !== undefined) {
    await writeFile(other, changed);
    await stage.objects.putFile(key, other);
  }
  try {
    return await work();
  } finally {
    await stage.objects.putFile(key, whole);
  }
}

const flip = (content: Buffer): Buffer => {
  const copy = Buffer.from(content);
  copy[Math.floor(copy.length / 2)]! ^= 1;
  return copy;
};

describe('index verify of objects', () => {
  it('finds nothing where all is whole, and leaves nothing behind', async () => {
    expect(segments.map(({ files }) => files.length).toSorted((a, b) => a - b)).toEqual([1, 1, 4]);
    for (const only of [undefined, stage.indexId]) {
      expect(await verify(only)).toMatchObject({
        document: { indexes: 1, segments: 3, records: 6, problems: [], unreferenced_files: [] },
        failed: false,
      });
    }
    expect(await readdir(stage.config.MAXSIMD_DATA_DIR)).toEqual([]);
  });

  it('names each object that is missing, cut or changed', async () => {
    for (const { blob, files } of segments) {
      for (const { ending } of files) {
        const key = blob + ending;
        const found = async (change: (content: Buffer) => Buffer | undefined) =>
          (await damaged(key, change, verify)).document;
        expect(await found(() => undefined)).toMatchObject({ problems: [problem(key, /^is missing$/)] });
        expect(await found((content) => content.subarray(0, content.length - 3))).toMatchObject({
          problems: [problem(key, /^is damaged: .* has \d+ bytes, \d+ were put/)],
        });
        expect(await found(flip)).toMatchObject({ problems: [problem(key, /another SHA-256/)] });
      }
    }
    expect(await verify()).toMatchObject({ failed: false });
  });

  it('says what a store that refuses answers', async () => {
    const loose = await startLooseS3();
    onTestFinished(() => loose.close());
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const [name, value] of Object.entries(loose.environment)) vi.stubEnv(name, value);
    loose.refusal = { status: 405, body: errorBody('MethodNotAllowed') };
    await expect(verify()).rejects.toThrow(
      'the object store cannot be reached: it answers, and refuses this request (405 MethodNotAllowed)',
    );
  });

  it('names damage that was there before the object was put', async () => {
    const { blob, files } = segments.find((segment) => segment.files.length === 1)!;
    const text = (value: unknown): string =>
      `UPDATE segments SET files = '${JSON.stringify(value)}' WHERE blob = '${blob}'`;
    const result = await damaged(blob, flip, async () => {
      const directory = await newDirectory();
      const copy = path.join(directory, 'copy');
      await expect(stage.objects.getFile(blob, copy, files[0]!)).rejects.toMatchObject({ code: 'corrupt' });
      const bytes = files[0]!.bytes;
      await writeFile(copy, await stage.objects.readPart(blob, 0, bytes));
      await queryDatabase(stage.url, text([{ ending: '', ...(await stage.objects.putFile(blob, copy)) }]));
      return await verify();
    });
    await queryDatabase(stage.url, text(files));
    expect(result).toMatchObject({ failed: true, document: { problems: [problem(blob, /./)] } });
    expect(await verify()).toMatchObject({ failed: false });
  });

  it('names documents that lie in no segment, and records that are others', async () => {
    const [first] = await queryDatabase(
      stage.url,
      `SELECT p.* FROM placements p JOIN versions v USING (version_id) JOIN segments s ON s.id = p.segment_id
        WHERE v.died = 0 AND s.state = 'sealed'`,
    );
    const place = { segment: Number(first!['segment_id']), record: Number(first!['record']) };
    const move = async (to: Partial<typeof place>): Promise<void> => {
      const { segment, record } = { ...place, ...to };
      await queryDatabase(
        stage.url,
        `UPDATE placements SET segment_id = ${segment}, record = ${record}
          WHERE segment_id = ${place.segment} AND record = ${place.record}`,
      );
      Object.assign(place, to);
    };
    const { segment, record } = place;
    await move({ segment: 999_999 });
    expect(await verify()).toMatchObject({
      failed: true,
      document: { problems: [problem('', /^1 documents lie in segment 999999/)] },
    });
    await move({ segment, record: 77 });
    expect(await verify()).toMatchObject({
      failed: true,
      document: {
        problems: [problem(expect.any(String) as unknown as string, /fewer records than are referenced/)],
      },
    });
    await move({ record });
    expect(await verify()).toMatchObject({ failed: false });
  });
});

describe('index inspect of objects', () => {
  it('says what the files hold, and what it cannot know', async () => {
    const { document, failed } = await inspect();
    expect(failed).toBe(false);
    expect(document).toMatchObject({
      data: [
        {
          index_id: stage.indexId,
          segments_sealed: 3,
          chunks: 6,
          token_vectors: 6,
          memory_bytes_per_token_vector: null,
          candidate_plan: null,
          candidate_plan_reason: expect.stringMatching(/not all of it was fetched/),
          segments: segments.map(({ id, files, records }) => ({
            segment_id: id,
            state: 'sealed',
            records,
            dim: 8,
            file_bytes: files[0]!.bytes,
            centroids: files.length === 1 ? 0 : expect.any(Number),
            filter_terms: files.length === 1 ? 0 : 4,
            problem: null,
          })),
        },
      ],
    });
    expect(await readdir(stage.config.MAXSIMD_DATA_DIR)).toEqual([]);
  });

  it('names an object whose end is not there', async () => {
    const { blob } = segments[0]!;
    const cut = (content: Buffer): Buffer => content.subarray(0, 100);
    const { document } = await damaged(blob, cut, inspect);
    expect(document).toMatchObject({
      data: [
        { segments: expect.arrayContaining([expect.objectContaining({ problem: expect.any(String) })]) },
      ],
    });
  });
});

describe('cluster status', () => {
  it('counts segments by state, and names nodes and who merges', async () => {
    await using own = await servers.openStage();
    const [one, two] = [await own.newNode(), await own.newNode()];
    await one.upsert([documentAt('a', 1)]);
    await two.found();
    await one.upsert([documentAt('b', 2)]);
    // With a search it has followed its own commit.
    await one.found();
    await own.catalog.createSegment({ id: 1_000_000, indexId: own.indexId, blob: `${own.indexId}/late.seg` });
    const model = { name: 'bge-small-maxsim', version: '2' };
    const report = async (node: Node) =>
      JSON.stringify(
        await nodeReport({
          version: '1.2.3',
          models: [model],
          catalog: own.catalog,
          cache: node.cache,
          followed: [node.index().statistics().followed!],
        }),
      );
    await own.catalog.heartbeat({ id: 'n1', name: 'host:1', report: await report(one) }, 1_000);
    await own.catalog.heartbeat({ id: 'n2', name: 'host:2', report: await report(two) }, 1_000);
    await own.catalog.heartbeat({ id: 'n3', name: 'host:3', report: 'of another release' }, 1_000);
    await queryDatabase(own.url, `UPDATE nodes SET seen_at = now() - interval '1 minute' WHERE id = 'n3'`);
    const lease = await own.catalog.acquireMergeLease(own.indexId, 'n2', 60_000);
    const cache = { bytes: expect.any(Number), bytes_max: 2 ** 30, files: expect.any(Number) };
    const node = (name: string, behind: number) => ({
      name,
      live: true,
      report: { version: '1.2.3', models: [model], cache, indexes: { open: 1, behind_max: behind } },
    });
    // Beside the late one: a writer has the name of its next delta made beforehand, while its last commit is answered.
    const uploads = 2;
    await vi.waitFor(async () => {
      const rows = await queryDatabase(own.url, `SELECT FROM segments WHERE state = 'uploading'`);
      expect(rows).toHaveLength(uploads);
    }, 10_000);
    const { document, text } = await clusterStatus(own.config);
    expect(document).toMatchObject({
      tenants: 1,
      indexes: 1,
      documents: 2,
      nodes: [
        node('host:1', 0),
        node('host:2', 1),
        { name: 'host:3', live: false, seen_seconds_ago: expect.closeTo(60, -1), report: null },
      ],
      segments: [
        { state: 'uploading', segments: uploads, objects: 0, bytes: 0 },
        { state: 'sealed', segments: 2, objects: 2 },
        { state: 'replaced', segments: 0, objects: 0, bytes: 0, oldest_seconds: 0 },
      ],
      merge_leases: [{ index_id: own.indexId, node: 'host:2', fence: lease!.fence }],
    });
    for (const words of [
      /host:3 +lost +6\d +\?/,
      /named +2 +2/,
      new RegExp(`being put +${uploads}`),
      /host:2 +1 +20/,
    ])
      expect(text).toMatch(words);

    // Objects of a deleted index are garbage until they are collected.
    await own.catalog.deleteIndex(own.tenantId, own.indexId);
    await queryDatabase(own.url, `UPDATE segments SET since = now() - interval '90 seconds'`);
    expect((await clusterStatus(own.config)).document).toMatchObject({
      documents: 0,
      segments: [
        { state: 'uploading', segments: 0 },
        { state: 'sealed', segments: 0 },
        {
          state: 'replaced',
          segments: uploads + 2,
          objects: 2,
          bytes: expect.any(Number),
          oldest_seconds: expect.closeTo(90, -1),
        },
      ],
      merge_leases: [],
    });
  });

  it('is refused without the variables', async () => {
    await expect(clusterStatus(parseConfig({}))).rejects.toMatchObject({
      code: 'configuration_error',
      exitCode: 2,
      message: expect.stringMatching(/MAXSIMD_CATALOG_URL, MAXSIMD_BLOBS_URL and MAXSIMD_LIMITER_URL/),
    });
  });
});

describe('commands for a data directory', () => {
  it('are refused with a reason', async () => {
    const { MAXSIMD_CATALOG_URL, MAXSIMD_BLOBS_URL, MAXSIMD_LIMITER_URL, MAXSIMD_KEY_PEPPER_FILE } =
      stage.config;
    const shared = { MAXSIMD_CATALOG_URL, MAXSIMD_BLOBS_URL, MAXSIMD_LIMITER_URL, MAXSIMD_KEY_PEPPER_FILE };
    for (const args of [
      ['index', 'compact'],
      ['key', 'reset', '--yes'],
    ]) {
      const { exitCode, document } = await runJsonHere(args, { environment: shared });
      expect(exitCode).toBe(2);
      expect(document.error).toMatchObject({
        code: 'configuration_error',
        message: expect.stringMatching(/works on a data directory, not on a cluster/),
      });
    }
  });
});
