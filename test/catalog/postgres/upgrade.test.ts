/** Nodes of two versions on one catalog. The newer program is this one, with planted migrations after its own. */
import { setTimeout as pause } from 'node:timers/promises';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { nodeLiveMs } from '../../../src/catalog/cluster-contract.ts';
import { catalogMigrations } from '../../../src/catalog/postgres/schema.ts';
import type { Node, NodeStage } from '../../support/cluster/node-stage.ts';
import { contracting, expanding, lying } from '../../support/cluster/planted-migrations.ts';
import { queryDatabase } from '../../support/cluster/servers.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';

const servers = useStageServers();

let stage: NodeStage;
beforeEach(async () => {
  stage = await servers.openStage();
  const opened = stage;
  onTestFinished(() => opened[Symbol.asyncDispose]());
});

const known = catalogMigrations.length;
const next = [...catalogMigrations, expanding];
const afterNext = [...next, contracting];

const document = (docId: string) => ({ docId, metadata: {}, chunks: [[[1, 2, 3, 4, 5, 6, 7, 8]]] });

/** Writes and searches in turns until it is ended. Rejects with any error that a serving node must not meet. */
function serve(node: Node, name: string) {
  const written: string[] = [];
  const ended = new AbortController();
  const serving = (async () => {
    while (!ended.signal.aborted) {
      const docId = `${name} ${written.length}`;
      await node.upsert([document(docId)]);
      written.push(docId);
      const found = await node.found();
      for (const own of written) expect(found).toContain(`${own} {}`);
    }
  })();
  serving.catch(() => undefined);
  return {
    written,
    async untilMore(): Promise<void> {
      const { length } = written;
      while (written.length < length + 5) await Promise.race([serving, pause(10)]);
    },
    async end(): Promise<void> {
      ended.abort();
      await serving;
    },
  };
}

it('a node serves before, while and after one of the next version migrates, and both see all', async () => {
  const old = await stage.newNode();
  const serving = serve(old, 'old');
  await serving.untilMore();
  const { length } = serving.written;
  const newer = await stage.newNode({ migrations: next });
  expect(serving.written.length).toBeGreaterThan(length);
  const servingToo = serve(newer, 'new');
  await serving.untilMore();
  await servingToo.untilMore();
  await Promise.all([serving.end(), servingToo.end()]);
  // A node of the old version that reopens the index, and one that starts now.
  await old.reopen();
  const late = await stage.newNode();
  expect(await newer.remove('old 0')).toBe(true);
  expect(await old.remove('new 0')).toBe(true);
  const all = [...serving.written, ...servingToo.written]
    .filter((docId) => !docId.endsWith(' 0'))
    .map((docId) => `${docId} {}`)
    .toSorted();
  for (const node of [old, newer, late]) expect(await node.found()).toEqual(all);
  const counted = await queryDatabase(stage.url, 'SELECT DISTINCT characters FROM versions');
  expect(counted).toEqual([{ characters: 2 }]);
});

it('nodes of the next version that start at once migrate once', async () => {
  const old = await stage.newNode();
  const nodes = await Promise.all([1, 2, 3, 4].map(() => stage.newNode({ migrations: next })));
  await nodes[0]!.upsert([document('a')]);
  for (const node of [old, ...nodes]) expect(await node.found()).toEqual(['a {}']);
  expect(await queryDatabase(stage.url, 'SELECT count(*)::integer AS runs FROM migrated_once')).toEqual([
    { runs: 1 },
  ]);
});

it('nothing is taken away while a node serves that needs it, and afterwards that node is refused', async () => {
  const old = await stage.newNode();
  const beat = (node: Node, name: string) =>
    node.catalog.heartbeat({ id: node.id, name, report: '{}' }, nodeLiveMs);
  await beat(old, 'host:1');
  const newer = await stage.newNode({ migrations: next });
  await beat(newer, 'host:2');
  await expect(stage.newNode({ migrations: afterNext })).rejects.toThrow(
    /nodes of an older maxsimd cannot go on .*: host:1; end them first/,
  );
  await old.upsert([document('a')]);
  await old.catalog.leave(old.id);
  await stage.newNode({ migrations: afterNext });
  await expect(stage.newNode()).rejects.toThrow(
    `schema version ${known + 2}, made by a newer maxsimd: programs that know version ${known + 1} or later work with it, and this one knows ${known}`,
  );
});

it('a migration that takes away what it says it keeps is found by this test', async () => {
  const serving = serve(await stage.newNode(), 'old');
  await serving.untilMore();
  await stage.newNode({ migrations: [...catalogMigrations, lying] });
  await expect(serving.untilMore()).rejects.toThrow(/metadata/);
});
