import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, onTestFailed } from 'vitest';
import type { ClusterCatalog, MergeLease } from '../../../src/catalog/cluster-contract.ts';
import type { IndexRow } from '../../../src/catalog/contract.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { IndexChanges } from '../../../src/contracts/index-state.ts';
import {
  commitDelta,
  deltaUpsert,
  newDelta,
  upsertDelta,
  type Delta,
} from '../../support/cluster/delta-writer.ts';
import { newSharedDatabase, queryDatabase } from '../../support/cluster/servers.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';
import { month, newIndex, newTenant, usageOf } from '../../support/stages/catalog-fixture.ts';

/** Three nodes of one catalog. */
let url: string;
let nodes: [ClusterCatalog, ClusterCatalog, ClusterCatalog];
let index: IndexRow;
beforeEach(async () => {
  url = await newSharedDatabase();
  const keyPepper = randomBytes(32);
  const open = () => openPostgresCatalog({ url, keyPepper });
  nodes = await Promise.all([open(), open(), open()]);
  index = await newIndex(nodes[0], (await newTenant(nodes[0], { documents: 1_000_000 })).id);
});
afterEach(() => Promise.all(nodes.map((node) => node.close())));

/** Picks the next of so many nodes. */
const nodeAt = (place: number): ClusterCatalog => nodes[place % nodes.length]!;

describe('upserts that share a transaction', () => {
  it('are decided one by one, and name the segment that they share', async () => {
    const { segment, documents } = await newDelta(nodes[0], index.id, ['a', 'b', 'c', 'd']);
    const partAt = (place: number): Delta => ({ segment, documents: [documents[place]!] });
    const usage = usageOf(index.tenantId, { requests: 1, inputTokens: 10n });
    const replacing = { ...documents[3]!, docId: 'a' };
    const results = await nodes[0].commitUpserts([
      deltaUpsert(index, partAt(0), { usage }),
      deltaUpsert(index, partAt(1), { usage, documentsMax: 1 }),
      deltaUpsert(index, partAt(2), { usage, inputTokensMax: 19n }),
      deltaUpsert(index, { segment, documents: [{ ...replacing, record: 4 }] }),
      deltaUpsert(index, { segment, documents: [replacing] }, { usage }),
    ]);
    expect(results).toMatchObject([
      { value: { outcome: 'committed', generation: 1, died: [] } },
      { value: { outcome: 'document_allowance_exceeded', documents: 1 } },
      { value: { outcome: 'token_allowance_exceeded' } },
      { status: 'rejected', reason: { message: expect.stringContaining('this is a bug') as string } },
      { value: { outcome: 'committed', generation: 2, died: [{ docId: 'a', record: 0 }] } },
    ]);
    const changes = (await nodes[1].changesSince({ indexId: index.id, generation: -1, segmentIds: [] }))!;
    expect(changes).toMatchObject({
      generation: 2,
      segments: [{ id: segment.id, records: 4 }],
      versions: {
        records: Uint32Array.of(0, 3),
        born: Float64Array.of(1, 2),
        died: Float64Array.of(2, 0),
      },
    });
    const totals = await nodes[2].usageTotals(index.tenantId, month);
    expect(totals).toMatchObject({ documents: 1, requests: 2, inputTokens: 20n });
  });

  it('name nothing when all are refused', async () => {
    const delta = await newDelta(nodes[0], index.id, ['a']);
    const refused = deltaUpsert(index, delta, { documentsMax: 0 });
    expect(await nodes[0].commitUpserts([refused])).toMatchObject([
      { value: { outcome: 'document_allowance_exceeded' } },
    ]);
    expect(await nodes[0].changesSince({ indexId: index.id, generation: -1, segmentIds: [] })).toMatchObject({
      generation: 0,
      segments: [],
    });
  });
});

describe('commits of several nodes to one index', () => {
  it('have generations without holes', async () => {
    const clients = Array.from({ length: 8 }, async (_client, client) => {
      const generations: number[] = [];
      for (let round = 0; round < 10; round += 1) {
        generations.push(await upsertDelta(nodeAt(client), index, [`own ${client}`, `shared ${round % 3}`]));
      }
      return generations;
    });
    const perClient = await Promise.all(clients);
    const generations = perClient.flat().toSorted((a, b) => a - b);
    expect(generations).toEqual(Array.from({ length: 80 }, (_value, place) => place + 1));
    for (const own of perClient) expect(own).toEqual(own.toSorted((a, b) => a - b));
    expect(await nodes[0].readHead(index.id)).toMatchObject({ generation: 80, layout: 0 });
    expect((await nodes[1].usageTotals(index.tenantId, month)).documents).toBe(8 + 3);
  });

  it('are in every head that is asked for after they were answered', async () => {
    for (let round = 0; round < 20; round += 1) {
      const generation = await upsertDelta(nodeAt(round), index, ['a']);
      const heads = await Promise.all(nodes.map((node) => node.readHead(index.id)));
      const { epoch } = heads[0]!;
      expect(heads).toEqual(nodes.map(() => ({ generation, layout: 0, epoch })));
    }
  });

  it('never exceed the allowance of documents', async () => {
    const { id: tenantId } = await newTenant(nodes[0]);
    const indexes = [await newIndex(nodes[0], tenantId), await newIndex(nodes[0], tenantId)];
    await upsertDelta(nodes[0], indexes[0]!, ['a', 'b', 'c']);
    const results = await Promise.all(
      Array.from({ length: 100 }, async (_request, request) => {
        const node = nodeAt(request);
        const { id } = indexes[request % 2]!;
        const delta = await newDelta(node, id, [`new ${request}`]);
        return await commitDelta(node, { tenantId, id }, delta, { documentsMax: 4 });
      }),
    );
    expect(results.filter(({ outcome }) => outcome === 'committed')).toHaveLength(1);
    expect(results.filter(({ outcome }) => outcome === 'document_allowance_exceeded')).toHaveLength(99);
    expect((await nodes[0].usageTotals(tenantId, month)).documents).toBe(4);
  });

  it('and other usage together never exceed the allowance of tokens', async () => {
    const { tenantId } = index;
    const limit = 1_000n;
    await nodes[0].recordUsage(usageOf(tenantId, { inputTokens: limit - 1n }), limit);
    const usage = usageOf(tenantId, { inputTokens: 1n, requests: 1 });
    const accepted = await Promise.all(
      Array.from({ length: 100 }, async (_request, request) => {
        const node = nodeAt(request);
        if (request % 2 === 0) {
          return await node.recordUsage(usage, limit).then(
            () => true,
            (error: unknown) => {
              expect(error).toMatchObject({ code: 'usage_limit_exceeded' });
              return false;
            },
          );
        }
        const delta = await newDelta(node, index.id, [`new ${request}`]);
        const { outcome } = await commitDelta(node, index, delta, { usage, inputTokensMax: limit });
        if (outcome !== 'committed') expect(outcome).toBe('token_allowance_exceeded');
        return outcome === 'committed';
      }),
    );
    expect(accepted.filter(Boolean)).toHaveLength(1);
    expect(await nodes[1].usageTotals(tenantId, month)).toMatchObject({ inputTokens: limit, requests: 1 });
  });

  it('go on beside deletions of indexes and tenants without a deadlock', async () => {
    const { id: tenantId } = await newTenant(nodes[0], { documents: 1_000_000 });
    const work = Array.from({ length: 12 }, async (_client, client) => {
      const node = nodeAt(client);
      const own = await newIndex(node, tenantId);
      const upserts = Array.from({ length: 5 }, async (_upsert, upsert) => {
        const delta = await newDelta(node, own.id, [`${upsert}`, 'shared']);
        return (await commitDelta(node, own, delta)).outcome;
      });
      const deleted = nodeAt(client + 1).deleteIndex(tenantId, own.id);
      // The index of a segment that came too late is gone.
      const outcomes = await Promise.allSettled(upserts);
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') expect(outcome.value).toMatch(/^(committed|index_missing)$/);
        else
          expect(outcome.reason).toMatchObject({
            code: expect.stringMatching(/not_found|service_unavailable/),
          });
      }
      expect(await deleted).toBe(true);
    });
    await Promise.all(work);
    expect((await nodes[0].usageTotals(tenantId, month)).documents).toBe(0);
    const creating = Promise.allSettled(
      Array.from({ length: 6 }, (_index, place) => newIndex(nodeAt(place), tenantId)),
    );
    expect(await nodes[0].deleteTenant(tenantId)).toBeDefined();
    for (const created of await creating) {
      if (created.status === 'rejected')
        expect(created.reason).toMatchObject({ code: 'authentication_failed' });
    }
    expect(await nodes[1].getTenant(tenantId)).toBeUndefined();
    expect(await nodes[1].listIndexIds()).toEqual([index.id]);
  });
});

describe('changes', () => {
  it('lead a node that follows to the state of a node that reopens the index', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    onTestFailed(() => console.error(`seed ${seed}`));
    const random = seededRandom(seed);
    const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
    const docIds = Array.from({ length: 12 }, (_value, place) => `document ${place}`);
    const followers = [new FollowingNode(), new FollowingNode(), new FollowingNode()];
    for (let step = 0; step < 150; step += 1) {
      const node = pick(nodes);
      const action = random();
      if (action < 0.5) {
        await upsertDelta(node, index, [...new Set([pick(docIds), pick(docIds), pick(docIds)])]);
      } else if (action < 0.7) {
        const usage = usageOf(index.tenantId);
        await node.commitDelete({ tenantId: index.tenantId, indexId: index.id, docId: pick(docIds), usage });
      } else if (action < 0.85) {
        await merge(node, random);
      } else if (action < 0.9) {
        const { generation } = (await node.readHead(index.id))!;
        await node.forgetDeadVersions(index.id, Math.max(0, generation - 5));
      }
      const follower = pick(followers);
      if (random() < 0.6) await follower.follow(pick(nodes));
    }
    // One node falls so far behind that it must reopen the index.
    await followers[0]!.follow(nodes[0]);
    for (const node of nodes) await upsertDelta(node, index, docIds.slice(0, 2));
    await nodes[0].forgetDeadVersions(index.id, (await nodes[0].readHead(index.id))!.generation);
    expect(await followers[0]!.follow(nodes[1])).toBe(true);
    for (const follower of followers) {
      await follower.follow(nodes[0]);
      const anew = new FollowingNode();
      await anew.follow(nodes[1]);
      expect(follower.live()).toEqual(anew.live());
      expect(follower.segments()).toEqual(anew.segments());
    }
    const { versions } = await nodes[0].loadIndexState(index.id);
    const live = [...versions.versionIds].filter((_id, place) => versions.died[place] === 0);
    expect(followers[0]!.live()).toEqual(live.toSorted((a, b) => a - b));
  });

  it('are none of an index that is gone', async () => {
    await nodes[0].deleteIndex(index.tenantId, index.id);
    expect(await nodes[1].readHead(index.id)).toBeUndefined();
    expect(
      await nodes[1].changesSince({ indexId: index.id, generation: -1, segmentIds: [] }),
    ).toBeUndefined();
  });
});

/** Merges two of the segments, or fewer if there are fewer. */
async function merge(node: ClusterCatalog, random: () => number): Promise<void> {
  const lease = (await node.acquireMergeLease(index.id, 'merger', 60_000))!;
  const all = await changesFor(node, -1, []);
  const first = Math.floor(random() * all.segments.length);
  const removed = all.segments.slice(first, first + 2).map(({ id }) => id);
  const { versions } = all;
  const moved = [...versions.versionIds.keys()].filter(
    (place) => versions.died[place] === 0 && removed.includes(versions.segmentIds[place]!),
  );
  const { segment } = await newDelta(node, index.id, moved.map(String));
  const moves = {
    versionIds: Float64Array.from(moved, (place) => versions.versionIds[place]!),
    records: Uint32Array.from(moved.keys()),
  };
  await node.placeVersions(segment.id, moves);
  const input = { lease, removedSegmentIds: removed };
  const swapped = await node.swapMerged(moved.length === 0 ? input : { ...input, target: segment });
  expect(swapped).toBe(true);
  await node.releaseMergeLease(lease);
}

async function changesFor(
  node: ClusterCatalog,
  generation: number,
  segmentIds: readonly number[],
): Promise<IndexChanges> {
  const changes = await node.changesSince({ indexId: index.id, generation, segmentIds });
  if (changes === undefined || changes === 'reopen') throw new Error(String(changes));
  return changes;
}

/** The state of a node, which it learns by changes alone: the records of its segments. */
class FollowingNode {
  #generation = -1;
  readonly #records = new Map<number, Map<number, { readonly versionId: number; died: number }>>();

  /** Returns whether it had to reopen the index. */
  async follow(node: ClusterCatalog): Promise<boolean> {
    const input = {
      indexId: index.id,
      generation: this.#generation,
      segmentIds: [...this.#records.keys()],
    };
    const changes = await node.changesSince(input);
    if (changes === undefined) throw new Error('the index is there');
    if (changes !== 'reopen') {
      this.#apply(changes);
      return false;
    }
    this.#generation = -1;
    this.#records.clear();
    await this.follow(node);
    return true;
  }

  live(): readonly number[] {
    const versions = [...this.#records.values()].flatMap((records) => [...records.values()]);
    return versions
      .filter(({ died }) => died === 0)
      .map(({ versionId }) => versionId)
      .toSorted((a, b) => a - b);
  }

  segments(): readonly number[] {
    return [...this.#records.keys()].toSorted((a, b) => a - b);
  }

  #apply({ generation, segments, versions, died }: IndexChanges): void {
    for (const [place, record] of died.records.entries()) {
      const version = this.#records.get(died.segmentIds[place]!)?.get(record);
      if (version !== undefined) version.died = died.died[place]!;
    }
    for (const { id } of segments) if (!this.#records.has(id)) this.#records.set(id, new Map());
    for (const [place, versionId] of versions.versionIds.entries()) {
      const records = this.#records.get(versions.segmentIds[place]!)!;
      records.set(versions.records[place]!, { versionId, died: versions.died[place]! });
    }
    const kept = new Set(segments.map(({ id }) => id));
    for (const id of this.#records.keys()) if (!kept.has(id)) this.#records.delete(id);
    this.#generation = generation;
  }
}

describe('changes of many versions', () => {
  it('come in pages, of one moment', async () => {
    const docIds = Array.from({ length: 21_000 }, (_value, place) => `d${place}`);
    await upsertDelta(nodes[0], index, docIds);
    await upsertDelta(nodes[1], index, ['d0', 'another']);
    const changes = await changesFor(nodes[2], -1, []);
    const { records, born, died } = changes.versions;
    expect(changes).toMatchObject({ generation: 2, segments: [{ records: 21_000 }, { records: 2 }] });
    expect(records).toEqual(Uint32Array.of(...docIds.keys(), 0, 1));
    expect(born.filter((generation) => generation === 2)).toHaveLength(2);
    expect([died[0], died.filter((generation) => generation > 0).length]).toEqual([2, 1]);
    const [first] = changes.segments;
    expect((await changesFor(nodes[2], 1, [first!.id])).versions.records).toEqual(Uint32Array.of(0, 1));
  });
});

describe('a turn to merge', () => {
  it('is of one node, until it runs out', async () => {
    const [a, b] = nodes;
    const lease = (await a.acquireMergeLease(index.id, 'a', 60_000))!;
    expect(await b.acquireMergeLease(index.id, 'b', 60_000)).toBeUndefined();
    expect(await a.acquireMergeLease(index.id, 'a', 60_000)).toEqual(lease);
    await a.releaseMergeLease(lease);
    const next = (await b.acquireMergeLease(index.id, 'b', 0))!;
    expect(next.fence).toBeGreaterThan(lease.fence);
    // The lease has expired, but no other node has taken it.
    expect(await b.renewMergeLease(next, 0)).toBe(true);
    const last = (await a.acquireMergeLease(index.id, 'a', 60_000))!;
    expect(last.fence).toBeGreaterThan(next.fence);
    expect(await b.renewMergeLease(next, 60_000)).toBe(false);
  });

  it('that another node has taken changes nothing', async () => {
    const [a, b] = nodes;
    await upsertDelta(a, index, ['x', 'y']);
    const slept = (await a.acquireMergeLease(index.id, 'a', 0))!;
    const held = (await b.acquireMergeLease(index.id, 'b', 60_000))!;
    const before = await changesFor(a, -1, []);
    const targets = [await newDelta(a, index.id, ['x', 'y']), await newDelta(b, index.id, ['x', 'y'])];
    const { versionIds, records } = before.versions;
    const swap = async (node: ClusterCatalog, lease: MergeLease) => {
      const target = targets[nodes.indexOf(node)]!.segment;
      await node.placeVersions(target.id, { versionIds, records });
      const removedSegmentIds = before.segments.map(({ id }) => id);
      return await node.swapMerged({ lease, removedSegmentIds, target });
    };
    expect(await swap(a, slept)).toBe(false);
    expect(await changesFor(a, -1, [])).toEqual(before);
    await a.releaseMergeLease(slept);
    expect(await swap(b, held)).toBe(true);
    const after = await changesFor(a, -1, []);
    expect(after.segments.map(({ id }) => id)).toEqual([targets[1]!.segment.id]);
    expect(after).toMatchObject({ generation: before.generation, layout: before.layout + 1 });
  });
});

describe('garbage', () => {
  const garbage = async (keptMs = 0) => {
    const rows = await Promise.all(nodes.map((node) => node.collectGarbage({ keptMs, limit: 100 })));
    return rows.flat().map(({ blob }) => blob);
  };

  it('are the blobs of an index that is gone, once each', async () => {
    await upsertDelta(nodes[0], index, ['a']);
    await upsertDelta(nodes[0], index, ['b']);
    const blobs = (await changesFor(nodes[0], -1, [])).segments.map(({ blob }) => blob);
    expect(await garbage()).toEqual([]);
    await nodes[0].deleteIndex(index.tenantId, index.id);
    expect(await garbage(3_600_000)).toEqual([]);
    expect((await garbage()).toSorted()).toEqual(blobs.toSorted());
    expect(await garbage(), 'others have them in hand').toEqual([]);
  });

  it('come again unless they are forgotten', async () => {
    await upsertDelta(nodes[0], index, ['a']);
    await upsertDelta(nodes[0], index, ['b']);
    await nodes[0].deleteIndex(index.tenantId, index.id);
    const [first, second] = await nodes[0].collectGarbage({ keptMs: 0, limit: 10 });
    await nodes[0].forgetGarbage([first!.segmentId]);
    expect(await queryDatabase(url, 'SELECT segment_id::integer FROM placements')).toEqual([
      { segment_id: second!.segmentId },
    ]);
    await queryDatabase(url, `UPDATE segments SET collected_at = now() - interval '11 minutes'`);
    expect(await nodes[1].collectGarbage({ keptMs: 0, limit: 10 })).toEqual([second]);
  });

  it('are uploads that no commit named for a day, and none can name them then', async () => {
    const old = await newDelta(nodes[0], index.id, ['old']);
    const young = await newDelta(nodes[0], index.id, ['young']);
    const age = async (hours: number) =>
      queryDatabase(
        url,
        `UPDATE segments SET since = now() - interval '${hours} hours' WHERE id = ${old.segment.id}`,
      );
    await age(23);
    expect(await garbage()).toEqual([]);
    await age(25);
    expect(await garbage()).toEqual([old.segment.blob]);
    await expect(commitDelta(nodes[1], index, old)).rejects.toThrow(ServiceError);
    expect(await commitDelta(nodes[1], index, young)).toMatchObject({ outcome: 'committed' });
  });
});

describe('nodes', () => {
  it('hear of each other while they live', async () => {
    const [a, b] = nodes;
    const node = (id: string) => ({ id, name: id, program: 'test', report: `"of ${id}"` });
    expect(await a.heartbeat(node('a'), 60_000)).toEqual([]);
    expect(await b.heartbeat(node('b'), 60_000)).toEqual(['"of a"']);
    await queryDatabase(url, `UPDATE nodes SET seen_at = now() - interval '2 minutes' WHERE id = 'a'`);
    expect(await b.heartbeat(node('b'), 60_000)).toEqual([]);
    expect((await a.listNodes()).map(({ id }) => id)).toEqual(['a', 'b']);
    await b.leave('b');
    expect((await a.listNodes()).map(({ id }) => id)).toEqual(['a']);
  });
});
