/** Which upserts of a node share a segment and a transaction, and what happens to the others when one fails. */
import { describe, expect, it } from 'vitest';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import type { Node, NodeStage } from '../../support/cluster/node-stage.ts';
import { dim, documentAt, type TestDocument } from '../../support/stages/index-stage.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';

const servers = useStageServers();

const document = (docId: string): TestDocument => documentAt(docId, 0);
const shown = (docId: string): string => `${docId} {}`;

/** A document of this many token vectors. */
const largeDocument = (docId: string, tokenVectors: number): TestDocument => ({
  docId,
  metadata: {},
  chunks: Array.from({ length: tokenVectors / 256 }, () => Array.from({ length: 256 }, () => row)),
});
const row = Array.from({ length: dim }, () => 100);

/** A node whose first put waits until it is released. It counts its puts and commits. */
async function openSlowNode(stage: NodeStage) {
  const first = Promise.withResolvers<void>();
  const puts: string[] = [];
  const commits: number[] = [];
  const failing = { put: false };
  const node = await stage.newNode({
    // A merge would put, too.
    settings: { sealedSegmentsMax: 1_000 },
    objects: (real): ObjectStore => ({
      ...real,
      async putFile(key, file) {
        puts.push(key);
        if (puts.length === 1) await first.promise;
        if (failing.put) throw new Error('no put');
        return real.putFile(key, file);
      },
    }),
    catalog: (real): ClusterCatalog => ({
      ...real,
      commitUpserts(inputs) {
        commits.push(inputs.length);
        return real.commitUpserts(inputs);
      },
    }),
  });
  return { node, puts, commits, failing, letGo: first.resolve };
}

const upsertAll = (node: Node, docIds: readonly string[]): readonly Promise<number>[] =>
  docIds.map((docId) => node.upsert([document(docId)]));

/** Runs upserts that end at the same moment, however busy the machine is. */
function upsertTogether(node: Node, docIds: readonly string[]): readonly Promise<number>[] {
  const written = Promise.withResolvers<void>();
  let waiting = 0;
  return docIds.map((docId) =>
    node.upsert([document(docId)], () => {
      waiting += 1;
      if (waiting === docIds.length) written.resolve();
      return written.promise;
    }),
  );
}

describe('upserts of one node', () => {
  it('share a segment and a transaction when they wait for the same', async () => {
    await using stage = await servers.openStage();
    const { node, puts, commits, letGo } = await openSlowNode(stage);
    const alone = node.upsert([document('a')]);
    await expect.poll(() => puts).toHaveLength(1);
    const others = upsertTogether(node, ['b', 'c', 'd', 'b']);
    // The others do not wait for the first, which is still held.
    const generations = await Promise.all(others);
    expect(new Set(generations)).toEqual(new Set([1, 2, 3, 4]));
    expect([puts.length, commits]).toEqual([2, [4]]);
    letGo();
    expect(await alone).toBe(5);
    const other = await stage.newNode();
    for (const each of [node, other]) expect(await each.found()).toEqual(['a', 'b', 'c', 'd'].map(shown));
    await expect.poll(() => node.index().statistics().segments).toHaveLength(2);
    expect([...node.errors, ...other.errors]).toEqual([]);
  });

  it('are refused together when their segment cannot be put, and the next is not', async () => {
    await using stage = await servers.openStage();
    const { node, commits, failing, letGo } = await openSlowNode(stage);
    letGo();
    failing.put = true;
    const outcomes = await Promise.allSettled(upsertAll(node, ['a', 'b', 'c']));
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    failing.put = false;
    expect(await node.upsert([document('d')])).toBe(1);
    expect(commits).toEqual([1]);
    expect(await node.found()).toEqual([shown('d')]);
    await expect.poll(() => node.index().statistics().segments).toHaveLength(1);
  });

  it('are not refused for one of them that is wrong', async () => {
    await using stage = await servers.openStage();
    const { node, puts, commits, letGo } = await openSlowNode(stage);
    const alone = node.upsert([document('a')]);
    await expect.poll(() => puts).toHaveLength(1);
    const illFormed = 'no Unicode: \ud800';
    const outcomes = Promise.allSettled(upsertTogether(node, ['b', illFormed, 'c']));
    await expect.poll(() => commits).toEqual([3, 1, 1, 1]);
    letGo();
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    await alone;
    expect(await node.found()).toEqual(['a', 'b', 'c'].map(shown));
    await expect.poll(() => node.index().statistics().segments).toHaveLength(3);
  });

  it('leave nothing when they end without a commit', async () => {
    await using stage = await servers.openStage();
    const { node, letGo } = await openSlowNode(stage);
    letGo();
    const failure = new Error('the encoder is gone');
    await expect(
      node.index().write(async (writer) => {
        await writer.append({
          versionId: 1,
          chunkRows: Uint32Array.of(1),
          vectors: new Int8Array(dim),
          scales: new Uint16Array(1),
          terms: new Uint8Array(),
        });
        throw failure;
      }),
    ).rejects.toBe(failure);
    await node.index().settled();
    expect(node.index().statistics().segments).toEqual([]);
    expect(node.cache.statistics.files).toBe(0);
  });

  it('write segments of their own when they are large, full ones and one more', async () => {
    await using stage = await servers.openStage();
    const { node, puts, commits, letGo } = await openSlowNode(stage);
    letGo();
    const large = Array.from({ length: 5 }, (_value, place) => largeDocument(`large ${place}`, 65_536));
    await Promise.all([node.upsert(large), node.upsert([document('a')])]);
    expect(commits).toEqual([1, 1]);
    expect(puts).toHaveLength(4);
    const other = await stage.newNode();
    const documents = await other.found();
    expect(new Set(documents)).toEqual(new Set([shown('a'), ...large.map(({ docId }) => shown(docId))]));
    expect(documents).toHaveLength(1 + 5 * 256);
  });
});
