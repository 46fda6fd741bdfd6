/** Columns of metadata on nodes: each writes its own beside its copies of segments, and nothing else knows of them. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { objectEndings } from '../../../src/index/cluster/segment-objects.ts';
import { columnsPrefix, segmentOfColumn } from '../../../src/index/segments/derived-data.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import type { Node, NodeStage } from '../../support/cluster/node-stage.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { eventually } from '../../support/running/eventually.ts';
import { engineError } from '../../support/stages/faults.ts';
import { documentAt } from '../../support/stages/index-stage.ts';

const servers = useStageServers();
const settings = { codesTokenVectorsMin: 10, sealedSegmentsMax: 1, wasteAgeMsMax: 0 };
const where = '{"place":{"gte":15,"lt":25}}';

let stage: NodeStage;
let nodes: readonly [Node, Node];
/** Keys of the objects that were put. */
const put: string[] = [];

const objects = (real: ObjectStore): ObjectStore => ({
  putFile: (key, file) => {
    put.push(key);
    return real.putFile(key, file);
  },
  getFile: (...got) => real.getFile(...got),
  readPart: (...read) => real.readPart(...read),
  remove: (key) => real.remove(key),
  ping: () => real.ping(),
  close: () => real.close(),
});

const documents = (first: number) =>
  Array.from({ length: 20 }, (_, place) =>
    documentAt(`d${first + place}`, place % 8, { place: first + place }),
  );
const wanted = Array.from({ length: 10 }, (_, place) => `d${15 + place} {"place":${15 + place}}`);

beforeAll(async () => {
  stage = await servers.openStage();
  nodes = [await stage.newNode({ settings, objects }), await stage.newNode({ settings, objects })];
});
afterAll(() => stage[Symbol.asyncDispose]());

async function namedSegments() {
  const changes = await stage.catalog.changesSince({
    indexId: stage.indexId,
    generation: -1,
    segmentIds: [],
  });
  return typeof changes === 'object' ? changes.segments : [];
}

/** Merges until there is one segment, which has codes, and every node is there. */
async function mergeAll(): Promise<void> {
  await eventually(async () => {
    for (const node of nodes) await node.index().maintain();
    const segments = nodes.flatMap((node) => node.index().statistics().segments);
    return segments.length === nodes.length && segments.every(({ centroids }) => centroids > 0);
  });
  for (const node of nodes) await node.index().settled();
}

/** Whether the only column of each node is that of the segment that the catalog names, and it is written to its end. */
async function haveOneColumn(): Promise<boolean> {
  const [segment] = await namedSegments();
  const found = await Promise.all(
    nodes.map(async ({ folder }) => (await readdir(folder)).filter((name) => name.includes(columnsPrefix))),
  );
  return found.every(
    ([name = '', ...others]) =>
      others.length === 0 && segment?.blob.endsWith(`/${segmentOfColumn(name)}`) === true,
  );
}

it('are written by each node that uses a field, and are no objects', async () => {
  await nodes[0].upsert(documents(0));
  await mergeAll();
  for (const node of nodes) await node.found({}, where);
  await eventually(haveOneColumn);
  const endings = (await namedSegments()).flatMap(({ files }) => files.map(({ ending }) => ending));
  expect(endings.filter((ending) => !objectEndings.includes(ending))).toEqual([]);
  expect(put.length).toBeGreaterThan(2);
  expect(put.filter((key) => key.includes(columnsPrefix))).toEqual([]);
});

it('are made of those of the sources where a merge has made a segment, and go with these', async () => {
  await nodes[1].upsert(documents(20));
  for (const node of nodes) expect(await node.found({}, where)).toEqual(wanted);
  await mergeAll();
  await eventually(haveOneColumn);
  for (const node of nodes) {
    node.faults.set('readMetadata', engineError('io'));
    expect(await node.found({}, where)).toEqual(wanted);
    await node.reopen();
    expect(await node.found({}, where)).toEqual(wanted);
    expect(node.faults.delete('readMetadata')).toBe(true);
    expect(node.errors).toEqual([]);
  }
});

it('are written by processes that share a cache, and each answers', async () => {
  const directory = path.join(await newDirectory(), 'cache');
  const sharing = [
    await stage.newNode({ settings, directory }),
    await stage.newNode({ settings, directory }),
  ];
  const fields = Array.from({ length: 30 }, (_, place) => `f${place}`);
  for (const field of fields) {
    const asked = sharing.map((node) => node.found({}, `{"${field}":{"exists":false},"place":{"gte":30}}`));
    for (const found of await Promise.all(asked)) expect(found).toHaveLength(10);
  }
  for (const node of sharing) {
    await node.index().settled();
    expect(node.errors).toEqual([]);
  }
});
