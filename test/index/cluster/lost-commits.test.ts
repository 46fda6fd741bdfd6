/** PostgreSQL loses its last commits while nodes run: they answer as of what it still has, and never with a mixture. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningPostgres } from '../../../deploy/local/postgres.ts';
import type { RunningSeaweed } from '../../../deploy/local/seaweedfs.ts';
import { copyOf, fallBack, type FallBack } from '../../support/cluster/lost-commits.ts';
import { openNodeStage, type Node } from '../../support/cluster/node-stage.ts';
import { serversMs, startTestPostgres, startTestSeaweed } from '../../support/cluster/servers.ts';
import { documentAt } from '../../support/stages/index-stage.ts';

/** Its own: the database goes back in time. */
const servers = {} as { postgres: RunningPostgres; weed: RunningSeaweed };
beforeAll(async () => {
  [servers.postgres, servers.weed] = await Promise.all([startTestPostgres(), startTestSeaweed()]);
}, serversMs);
afterAll(() => Promise.all([servers.postgres.stop(), servers.weed.stop()]));

const upsert = (node: Node, docId: string, version: number) =>
  node.upsert([documentAt(docId, version, { version })]);

/** Opens an index that cannot be used again, as the service does. The first tries meet connections of the old server. */
async function again<T>(node: Node, work: () => Promise<T>): Promise<T> {
  let result: { readonly value: T } | undefined;
  const attempt = async (): Promise<boolean> => {
    result = await work().then(
      (value) => ({ value }),
      (error: unknown) => {
        expect(error).toMatchObject({ code: 'service_unavailable' });
        return undefined;
      },
    );
    if (!node.index().usable) await node.reopen();
    return result !== undefined;
  };
  await expect.poll(attempt).toBe(true);
  return result!.value;
}

const ways: readonly FallBack[] = ['promoted replica', 'older copy'];

it.each(ways)('never answers with a mixture of two histories: %s', async (way) => {
  await using stage = await openNodeStage(servers.postgres, servers.weed);
  const [writer, reader] = [await stage.newNode(), await stage.newNode()];
  let others = 0;
  writer.catalog.watchEpoch(() => (others += 1));
  await upsert(writer, 'kept', 1);
  const kept = await writer.found();
  expect(await reader.found()).toEqual(kept);
  const copy = await copyOf(servers.postgres);

  // Both nodes have these in memory, and the catalog loses them.
  await upsert(writer, 'lost', 2);
  await writer.remove('kept');
  expect(await writer.found()).toEqual(['lost {"version":2}']);
  expect(await reader.found()).toEqual(['lost {"version":2}']);
  const idsLost = await stage.catalog.allocateIds(1_000);
  await fallBack(servers.postgres, copy, way);

  // One more commit than were lost, so that their generations are given again.
  for (const version of [3, 4, 5]) await again(writer, () => upsert(writer, `new${version}`, version));
  const now = ['kept {"version":1}', 'new3 {"version":3}', 'new4 {"version":4}', 'new5 {"version":5}'];
  expect(await again(reader, () => reader.found())).toEqual(now);
  expect(await again(writer, () => writer.found())).toEqual(now);
  expect(others).toBe(1);

  const ids = await again(writer, () => stage.catalog.allocateIds(1_000));
  expect(Math.min(...ids)).toBeGreaterThan(Math.max(...idsLost));
  for (const node of [writer, reader]) {
    await node.reopen();
    expect(await node.found()).toEqual(now);
  }
});

it('does not swap a merge of a lost history in, though the fence is given again', async () => {
  await using stage = await openNodeStage(servers.postgres, servers.weed);
  const copy = await copyOf(servers.postgres);
  const slept = (await stage.catalog.acquireMergeLease(stage.indexId, 'asleep', 60_000))!;
  await fallBack(servers.postgres, copy, 'older copy');
  const node = await stage.newNode();
  const held = (await node.catalog.acquireMergeLease(stage.indexId, 'awake', 60_000))!;
  expect(held.fence).toBe(slept.fence);
  expect(held.epoch).not.toBe(slept.epoch);
  const nothing = {
    removedSegmentIds: [],
    moves: { versionIds: new Float64Array(), records: new Uint32Array() },
  };
  expect(await again(node, () => node.catalog.swapMerged({ lease: slept, ...nothing }))).toBe(false);
});
