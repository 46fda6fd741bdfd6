/**
 * Random damage of the local copies of a node's derived data, before the index is opened and while it is open: searches answer
 * as before, the damage is said once, and the copy is fetched again. A damaged column of metadata is not used, and is written
 * again. `TEST_SEED` repeats a run.
 */
import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { segmentOfColumn } from '../../../src/index/segments/derived-data.ts';
import { rounds } from '../../rounds.ts';
import type { Node, NodeStage } from '../../support/cluster/node-stage.ts';
import { serversMs } from '../../support/cluster/servers.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';
import { cutPages, damage } from '../../support/machine/file-damage.ts';
import { announceRandom, createRandom, type Random } from '../../support/running/random.ts';
import { eventually, hangMs } from '../../support/running/eventually.ts';
import { conditionIn, dim, exactSearch } from '../../support/stages/index-stage.ts';

const servers = useStageServers();
const count = rounds({ short: 8, nightly: 500 });
const settings = {
  codesTokenVectorsMin: 1,
  sealedSegmentsMax: 1,
  wasteAgeMsMax: Infinity,
  verifyAgeMsMax: 0,
  verifyBytesPerSecond: Number.MAX_SAFE_INTEGER,
};

const kinds = ['codes', 'codebook', 'postings'] as const;
type Kind = (typeof kinds)[number];

const noBytes = Buffer.alloc(0);

let stage: NodeStage;
let node: Node;
/** The files of the cache with the bytes of the objects. */
let intact: ReadonlyMap<string, Buffer>;
let expected: Awaited<ReturnType<typeof answers>>;

beforeAll(async () => {
  stage = await servers.openStage();
  const writer = await stage.newNode({ settings });
  const random = createRandom(1);
  const row = (): readonly number[] => Array.from({ length: dim }, () => random.integer(-127, 127));
  const documents = Array.from({ length: 120 }, (_, place) => ({
    docId: `d${place}`,
    metadata: { third: place % 3, place },
    chunks: [Array.from({ length: 4 }, row)],
  }));
  for (const first of [0, 60]) await writer.upsert(documents.slice(first, first + 60));
  while (lacking(writer).length > 0) await writer.index().maintain();
  // A node also mends codes that it does not use by merging their segment. This one leaves that to the others.
  const own = { ...settings, codesTokenVectorsMin: Infinity };
  node = await stage.newNode({ settings: own, exactTokenVectorsMax: 1 });
  expected = await answers();
  await eventually(async () => (await names()).some(isColumn));
  await node.index().maintain();
  await node.index().settled();
  intact = new Map(
    await Promise.all((await names()).map(async (name) => [name, await readFile(file(name))] as const)),
  );
  return () => stage[Symbol.asyncDispose]();
}, serversMs);

describe('a damaged copy of derived data', () => {
  it.each(kinds)(
    '(%s) is said once and fetched again, and no answer is wrong',
    async (kind) => {
      const random = announceRandom(`damaged copies: ${kind}`);
      for (let round = 0; round < count; round += 1) await damagedRound(random, kind);
      expect(node.errors).toEqual([]);
    },
    60_000 + count * 2_000,
  );

  it('that was evicted is no damage, and neither is a column that was', async () => {
    for (const name of [...kinds.map(named), column()]) await rm(file(name));
    await node.index().maintain();
    await node.index().settled();
    expect(node.index().usable).toBe(true);
    await node.reopen();
    expect(await answers()).toEqual(expected);
    expect(lacking(node)).toEqual([]);
    expect(node.errors).toEqual([]);
    await expect.poll(names).toContain(column());
  });
});

describe('a damaged column', () => {
  it(
    'makes no answer wrong, and is written again',
    async () => {
      const random = announceRandom('damaged copies: columns');
      for (let round = 0; round < count; round += 1) await damagedColumn(random);
      expect(node.errors).toEqual([]);
    },
    60_000 + count * 2_000,
  );
});

async function damagedColumn(random: Random): Promise<void> {
  const name = column();
  const isOpen = random.next() < 0.5;
  const { what, bytes } = (isOpen ? cutPages : damage)(random, intact.get(name)!);
  const round = `${name}, ${what}${isOpen ? ' below its mapping' : ''}`;
  if (isOpen) await truncate(file(name), bytes.length);
  else await node.reopen(() => writeFile(file(name), bytes));
  expect(await answers(), round).toEqual(expected);
  await node.reopen();
  expect(await answers(), round).toEqual(expected);
  await eventually(async () => intact.get(name)!.equals(await readFile(file(name)).catch(() => noBytes)));
}

async function damagedRound(random: Random, kind: Kind): Promise<void> {
  const name = named(kind);
  const isOpen = random.next() < 0.5;
  const { what, bytes } = (isOpen ? cutPages : damage)(random, intact.get(name)!);
  const round = `${name}, ${what}${isOpen ? ' below its mapping' : ''}`;
  if (isOpen) await truncate(file(name), bytes.length);
  else await node.reopen(() => writeFile(file(name), bytes));
  await expectAnswers(round);
  await node.index().maintain();
  await node.index().settled();
  if (!node.index().usable) await node.reopen();
  expect(await answers(), round).toEqual(expected);
  expect(lacking(node), round).toEqual([]);
  expect(await readFile(file(name)), round).toEqual(intact.get(name));
  expect(node.errors.splice(0).map(String), round).toEqual([expect.stringContaining(name)]);
  await node.index().maintain();
  await node.reopen();
  expect(await answers(), round).toEqual(expected);
  expect(node.errors, round).toEqual([]);
}

/** Damaged codes may choose other chunks until they are fetched again, but never give another score. */
async function expectAnswers(round: string): Promise<void> {
  const { byCodes, ...exact } = await answers();
  expect({ ...exact, byCodes: expected.byCodes }, round).toEqual(expected);
  expect(byCodes, round).toHaveLength(10);
  expect(expected.all, round).toEqual(expect.arrayContaining([...byCodes]));
}

async function answers() {
  const search = (filter: Readonly<Record<string, unknown>>, asked: object = {}) =>
    node.index().read(async (reader) => {
      const { versionIds, scores } = await reader.search({
        ...exactSearch(filter),
        ...asked,
        timeoutMs: hangMs,
      });
      return [...versionIds].map((versionId, place) => `${versionId} ${scores[place]}`);
    });
  return {
    all: await search({}),
    filtered: await search({ third: 1 }),
    ranged: await search({}, conditionIn('{"place":{"gte":10,"lt":50}}')),
    byCodes: await search({}, { topK: 10, candidateK: 30, plan: 'codes' }),
  };
}

/** The segments that have no codes or no postings in use. */
function lacking(of: Node) {
  const { segments } = of.index().statistics();
  if (segments.length !== 1) return segments;
  return segments.filter(({ centroids, postingBytes }) => centroids === 0 || postingBytes === 0);
}

function named(kind: Kind): string {
  const isOfKind = (name: string) =>
    kind === 'codebook' ? name.startsWith('codebook-') : name.endsWith(`.${kind}`);
  return [...intact.keys()].find(isOfKind)!;
}

/** The column of the one field that conditions compare, in the one segment. */
function column(): string {
  return [...intact.keys()].find(isColumn)!;
}

function isColumn(name: string): boolean {
  return segmentOfColumn(name) !== undefined;
}

function names(): Promise<readonly string[]> {
  return readdir(node.folder);
}

function file(name: string): string {
  return path.join(node.folder, name);
}
