/** PostgreSQL is restored to an earlier moment, with its own programs; the bucket stays as it is. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { installServers } from '../../../deploy/local/install.ts';
import { removeGarbage } from '../../../src/service/garbage.ts';
import type { NodeStage } from '../../support/cluster/node-stage.ts';
import { queryDatabase } from '../../support/cluster/servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { documentAt } from '../../support/stages/index-stage.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';

const servers = useStageServers();

/** The least that MAXSIMD_REPLACED_KEPT_SECONDS may be. */
const keptMs = 3_600_000;
const settings = { sealedSegmentsMax: 2, wasteAgeMsMax: 0 };

async function run(program: string, args: readonly string[]): Promise<void> {
  const { postgres: programs } = await installServers();
  await promisify(execFile)(path.join(programs, program), [...args]);
}

/** Dumps the catalog in the middle of the life of an index. All segments of that moment are replaced afterwards. */
async function dumpAndGoOn(stage: NodeStage, directory: string) {
  const node = await stage.newNode({ directory, settings });
  const upsert = (docId: string, version: number) => node.upsert([documentAt(docId, version, { version })]);
  for (const docId of ['a', 'b', 'c', 'd']) await upsert(docId, 1);
  await upsert('a', 2);
  await node.remove('b');
  await node.index().maintain();
  const found = await node.found();
  const sealed = `SELECT blob FROM segments WHERE state = 'sealed' ORDER BY blob`;
  const named = await queryDatabase(stage.url, sealed);
  const dump = path.join(await newDirectory(), 'dump');
  await run('pg_dump', ['--format=custom', `--file=${dump}`, `--dbname=${stage.url}`]);

  for (const docId of ['a', 'c', 'd', 'e']) await upsert(docId, 3);
  await node.remove('d');
  await node.index().maintain();
  expect(await node.found()).toEqual(['a {"version":3}', 'c {"version":3}', 'e {"version":3}']);
  const stillNamed = await queryDatabase(stage.url, sealed);
  expect(named.length).toBeGreaterThan(0);
  for (const segment of named) expect(stillNamed).not.toContainEqual(segment);
  await node.close();
  return {
    found,
    restore: () =>
      run('pg_restore', ['--clean', '--if-exists', '--single-transaction', `--dbname=${stage.url}`, dump]),
  };
}

it('finds all of that moment, with nodes that keep their caches and with new ones', async () => {
  await using stage = await servers.openStage();
  const directory = path.join(await newDirectory(), 'cache');
  const { found, restore } = await dumpAndGoOn(stage, directory);
  expect(found).toEqual(['a {"version":2}', 'c {"version":1}', 'd {"version":1}']);
  await removeGarbage(stage.catalog, stage.objects, keptMs);
  await restore();
  const warm = await stage.newNode({ directory, settings });
  const cold = await stage.newNode({ settings });
  for (const node of [warm, cold]) expect(await node.found()).toEqual(found);

  // The generations and identifiers of the lost commits are given again.
  await cold.upsert([documentAt('f', 1, { version: 4 })]);
  await warm.remove('c');
  await warm.index().maintain();
  for (const node of [warm, cold, await stage.newNode()]) {
    expect(await node.found()).toEqual(['a {"version":2}', 'd {"version":1}', 'f {"version":4}']);
    expect(node.errors).toEqual([]);
  }
});

it('needs replaced objects: without them an index cannot be served', async () => {
  await using stage = await servers.openStage();
  const { restore } = await dumpAndGoOn(stage, path.join(await newDirectory(), 'cache'));
  expect(await removeGarbage(stage.catalog, stage.objects, 0)).toBeGreaterThan(0);
  await restore();
  const node = await stage.newNode({ settings });
  await expect(node.found()).rejects.toMatchObject({ code: 'service_unavailable' });
});
