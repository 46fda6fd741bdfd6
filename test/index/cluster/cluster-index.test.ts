/** An index that nodes share, as each of them sees it. */
import { readFile, readdir, truncate } from 'node:fs/promises';
import path from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Node } from '../../support/cluster/node-stage.ts';
import { defaultRecallSettings } from '../../../src/index/recall/measuring.ts';
import { documentAt, exactSearch } from '../../support/stages/index-stage.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';
import { meetsText, metadata, wherePart } from '../../support/conditions.ts';
import { eventually } from '../../support/running/eventually.ts';

const servers = useStageServers();

const document = (docId: string, version: number) => documentAt(docId, version % 8, { version });
const shown = (docId: string, version: number): string => `${docId} {"version":${version}}`;

describe('every node', () => {
  it('sees what any node has answered, at once', async () => {
    await using stage = await servers.openStage();
    const [one, two] = [await stage.newNode(), await stage.newNode()];
    expect(await two.found()).toEqual([]);
    await one.upsert([document('a', 1), document('b', 1)]);
    expect(await two.statistics()).toMatchObject({ recordsLive: 2 });
    expect(await two.found()).toEqual([shown('a', 1), shown('b', 1)]);
    await two.upsert([document('a', 2)]);
    expect(await one.found()).toEqual([shown('a', 2), shown('b', 1)]);
    expect(await one.remove('b')).toBe(true);
    expect(await two.remove('b')).toBe(false);
    expect(await two.found()).toEqual([shown('a', 2)]);
    expect(await two.found({ version: 2 })).toEqual([shown('a', 2)]);
    expect(await two.found({ version: 1 })).toEqual([]);
    const cold = await stage.newNode();
    expect(await cold.found()).toEqual([shown('a', 2)]);
    expect([...one.errors, ...two.errors, ...cold.errors]).toEqual([]);
  });

  it('sees metadata that any node has updated, and updates what any node has written or merged', async () => {
    await using stage = await servers.openStage();
    const settings = { sealedSegmentsMax: 1, wasteAgeMsMax: 0 };
    const [one, two] = [await stage.newNode({ settings }), await stage.newNode({ settings })];
    await one.upsert([document('a', 1), document('b', 1)]);
    // This node has nothing of the index yet.
    expect(await two.update('a', { version: 2 })).toBe(true);
    expect(await one.found()).toEqual([shown('a', 2), shown('b', 1)]);
    expect(await one.found({ version: 1 })).toEqual([shown('b', 1)]);
    expect(await two.update('c', {})).toBe(false);
    await one.upsert([document('c', 3)]);
    // The other node may have the turn to merge.
    const isMerged = async () => {
      await one.index().maintain();
      return (await stage.catalog.readHead(stage.indexId))?.layout === 0 ? undefined : true;
    };
    await eventually(isMerged);
    // A merge may remove the segment of a record before it is read. Then the caller asks the catalog again.
    for (const id of ['a', 'b', 'c']) {
      const isUpdated = () => two.update(id, { version: 4 });
      await eventually(isUpdated);
    }
    expect(await one.found({ version: 4 })).toEqual(['a', 'b', 'c'].map((id) => shown(id, 4)));
    // An upsert that comes between must not be undone.
    const changed = await two.update('a', { version: 5 }, async () => {
      await one.upsert([document('a', 6)]);
    });
    expect(changed).toBe(false);
    expect(await two.found()).toEqual([shown('a', 6), shown('b', 4), shown('c', 4)]);
    expect([...one.errors, ...two.errors]).toEqual([]);
  });

  it.each([
    [true, 2],
    [false, 3],
  ])('beside nodes of an earlier release (%s) fits codebooks of format %i', async (earlier, format) => {
    await using stage = await servers.openStage();
    const settings = { sealedSegmentsMax: 1, wasteAgeMsMax: 0, codesTokenVectorsMin: 1 };
    const node = await stage.newNode({ settings, earlierNodes: () => earlier });
    for (const id of ['a', 'b']) await node.upsert([document(id, 1)]);
    await eventually(async () => {
      await node.index().maintain();
      return (await node.statistics()).segments.some(({ centroids }) => centroids > 0) || undefined;
    });
    const name = (await readdir(node.folder)).find((each) => each.startsWith('codebook-'));
    const header = await readFile(path.join(node.folder, name!));
    expect(header.readUInt32LE(8)).toBe(format);
    expect(node.errors).toEqual([]);
  });

  it('finds what conditions say, in what any node has written or merged', async () => {
    const seed = Date.now() % 2 ** 31;
    const wheres = fc.sample(wherePart, { seed, numRuns: 40 });
    const texts = fc.sample(metadata, { seed, numRuns: 12 });
    await using stage = await servers.openStage();
    // Merged segments have codes, and so their columns are files.
    const settings = { sealedSegmentsMax: 1, wasteAgeMsMax: 0, codesTokenVectorsMin: 1 };
    const [one, two] = [await stage.newNode({ settings }), await stage.newNode({ settings })];
    const compare = async (node: Node, stored: number): Promise<void> => {
      for (const where of wheres) {
        const wanted = texts
          .slice(0, stored)
          .flatMap((text, n) => (meetsText(text, where) ? [`d${n} ${text}`] : []));
        expect([seed, where, await node.found({}, where)]).toEqual([seed, where, wanted.toSorted()]);
      }
    };
    for (const [n, text] of texts.entries()) {
      await [one, two][n % 2]!.upsert([{ ...documentAt(`d${n}`, 0), metadataText: text }]);
      if (n === 5) await compare(two, n + 1);
    }
    await compare(one, texts.length);
    const isMerged = async () => {
      await one.index().maintain();
      return (await stage.catalog.readHead(stage.indexId))?.layout === 0 ? undefined : true;
    };
    await eventually(isMerged);
    await compare(two, texts.length);
    await compare(await stage.newNode(), texts.length);
  });
});

describe('a node', () => {
  it('measures the recall of its own searches', async () => {
    await using stage = await servers.openStage();
    const recall = { ...defaultRecallSettings, share: 1, shareOfNew: 1, load: Infinity };
    const options = {
      settings: { sealedSegmentsMax: 1, codesTokenVectorsMin: 1, recall },
      exactTokenVectorsMax: 1,
    };
    const [one, two] = [await stage.newNode(options), await stage.newNode(options)];
    for (const part of ['a', 'b', 'c'])
      await one.upsert(Array.from({ length: 120 }, (_, number) => document(`${part}${number}`, number)));
    await one.index().maintain();
    const search = async (node: Node) => {
      const { topK: _, candidateK: __, plan: ___, ...exact } = exactSearch({});
      const asked = { ...exact, topK: 10, candidateK: 20 };
      return (await node.index().read((reader) => reader.search(asked))).plan;
    };
    await expect.poll(() => search(one)).not.toBe('exact');
    await expect
      .poll(() => one.index().recall)
      .toMatchObject({ at10: { mean: expect.any(Number) as number } });
    expect(two.index().recall).toBeUndefined();
    await search(two);
    await expect.poll(() => two.index().recall).toMatchObject({ comparisons: 1 });
    expect([...one.errors, ...two.errors]).toEqual([]);
  });

  it('fetches a local copy again that was damaged', async () => {
    await using stage = await servers.openStage();
    const one = await stage.newNode();
    await one.upsert([document('a', 1)]);
    const two = await stage.newNode();
    expect(await two.found()).toEqual([shown('a', 1)]);
    const folder = two.folder;
    const [file = ''] = await readdir(folder);
    await truncate(path.join(folder, file), 100);
    await two.reopen();
    expect(await two.found()).toEqual([shown('a', 1)]);
    expect(two.errors).toHaveLength(1);
  });

  it('refuses an upsert that cannot be put or committed, and stores nothing', async () => {
    await using stage = await servers.openStage();
    let failing = '';
    const one = await stage.newNode({
      objects: (real) => ({
        ...real,
        putFile: (key, file) =>
          failing === 'put' ? Promise.reject(new Error('no put')) : real.putFile(key, file),
      }),
      catalog: (real) => ({
        ...real,
        commitUpserts: (inputs) =>
          failing === 'commit' ? Promise.reject(new Error('no commit')) : real.commitUpserts(inputs),
      }),
    });
    for (failing of ['put', 'commit']) {
      await expect(one.upsert([document('a', 1)])).rejects.toThrow(`no ${failing}`);
      expect(await one.found()).toEqual([]);
    }
    failing = '';
    await one.upsert([document('a', 2)]);
    expect(await one.found()).toEqual([shown('a', 2)]);
    expect(one.index().statistics().segments).toHaveLength(1);
    expect(await readdir(one.folder)).toHaveLength(2);
  });

  it('that slept past its turn to merge changes nothing', async () => {
    await using stage = await servers.openStage();
    const settings = { sealedSegmentsMax: 2, wasteAgeMsMax: Infinity };
    const swapping = Promise.withResolvers<void>();
    const awake = Promise.withResolvers<void>();
    const sleeper = await stage.newNode({
      settings,
      catalog: (real) => ({
        ...real,
        async swapMerged(input) {
          swapping.resolve();
          await awake.promise;
          return real.swapMerged(input);
        },
      }),
    });
    for (const id of ['a', 'b', 'c', 'd']) await sleeper.upsert([document(id, 1)]);
    await swapping.promise;
    // The turn runs out, by the clock of the database.
    const lease = await stage.catalog.acquireMergeLease(stage.indexId, sleeper.id, 1);
    expect(lease).toBeDefined();
    const other = await stage.newNode({ settings });
    await expect.poll(async () => stage.catalog.acquireMergeLease(stage.indexId, other.id, 1)).toBeDefined();
    await other.upsert([document('a', 2)]);
    await other.index().maintain();
    const { layout } = (await stage.catalog.readHead(stage.indexId))!;
    awake.resolve();
    expect(layout).toBeGreaterThan(0);
    await expect.poll(() => sleeper.errors).toHaveLength(1);
    expect(await stage.catalog.readHead(stage.indexId)).toMatchObject({ layout });
    const expected = [shown('a', 2), ...['b', 'c', 'd'].map((id) => shown(id, 1))];
    for (const node of [sleeper, other]) expect(await node.found()).toEqual(expected);
  });
});
