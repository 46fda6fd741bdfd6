/** Deleted data goes from indexes that no node has open. */
import { describe, expect, it } from 'vitest';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import { Expiry } from '../../../src/service/indexes/expiry.ts';
import { Indexes } from '../../../src/service/indexes/indexes.ts';
import { Upkeep } from '../../../src/service/indexes/upkeep.ts';
import { wasteAges } from '../../../src/service/indexes/waste-ages.ts';
import type { Node, NodeStage } from '../../support/cluster/node-stage.ts';
import { queryDatabase } from '../../support/cluster/servers.ts';
import { newIndex } from '../../support/stages/catalog-fixture.ts';
import { documentAt } from '../../support/stages/index-stage.ts';
import { useStageServers } from '../../support/cluster/stage-servers.ts';

const servers = useStageServers();

const hourMs = 3_600_000;
const ageMs = 5 * hourMs;

async function passHours(stage: NodeStage, hours: number): Promise<void> {
  await queryDatabase(stage.url, `UPDATE indexes SET swept_at = swept_at - ${hours} * interval '1 hour'`);
}

async function stored(stage: NodeStage) {
  const [row] = await queryDatabase(
    stage.url,
    `SELECT documents_stored AS documents,
        (SELECT coalesce(sum(records_sealed), 0)::integer FROM segments s
          WHERE s.index_key = i.index_key AND state = 'sealed') AS records,
        (SELECT count(*)::integer FROM versions v WHERE v.index_key = i.index_key AND died > 0) AS dead
      FROM indexes i WHERE id = '${stage.indexId}'`,
  );
  return { ...row, documents: Number(row?.['documents']) };
}

/** One round of upkeep of a node that gets no request. */
async function upkeepOf(node: Node, changed: Partial<ClusterCatalog> = {}): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  const indexes = new Indexes({
    catalog: node.catalog,
    store: node.storage,
    memory: { memory: () => ({ mostBytes: Infinity, takenBytes: 0 }), memoryOwners: () => [] },
    nowMs: Date.now,
    shared: node.catalog,
    onRemovalError: (_indexId, error) => errors.push(error),
  });
  const upkeep = new Upkeep({
    catalog: { ...node.catalog, ...changed },
    indexes,
    expiry: new Expiry({ catalog: node.catalog, indexes, nowMs: Date.now }),
    claimSweep: () => node.catalog.claimSweep({ ageMs, limit: 10 }),
    onError: (_job, error) => errors.push(error),
  });
  await upkeep.run();
  await upkeep.stop();
  await indexes.close();
  return errors;
}

/** Three documents in as many segments, one of them deleted, and no node that has the index open. */
async function leaveWaste(stage: NodeStage): Promise<void> {
  const node = await stage.newNode({ settings: { wasteAgeMsMax: Infinity } });
  for (const docId of ['a', 'b', 'c']) await node.upsert([documentAt(docId, 1)]);
  await node.remove('b');
  await node.close();
}

describe('a sweep', () => {
  it('rewrites deleted data, and forgets the deaths that the sweep before had met', async () => {
    await using stage = await servers.openStage();
    await leaveWaste(stage);
    const node = await stage.newNode();
    expect(await upkeepOf(node)).toEqual([]);
    expect(await stored(stage)).toEqual({ documents: 2, records: 3, dead: 1 });
    await passHours(stage, 6);
    expect(await upkeepOf(node)).toEqual([]);
    expect(await stored(stage)).toEqual({ documents: 2, records: 2, dead: 1 });
    await passHours(stage, 6);
    const failure = new Error('deaths cannot be forgotten');
    expect(await upkeepOf(node, { forgetDeadVersions: () => Promise.reject(failure) })).toEqual([failure]);
    expect(await stored(stage)).toEqual({ documents: 2, records: 2, dead: 1 });
    await passHours(stage, 6);
    expect(await upkeepOf(node)).toEqual([]);
    expect(await stored(stage)).toEqual({ documents: 2, records: 2, dead: 0 });
    expect(await node.found()).toEqual(['a {}', 'c {}']);
    expect(node.errors).toEqual([]);
  });

  it('takes up each index once, and names those alone that hold waste', async () => {
    await using stage = await servers.openStage();
    await leaveWaste(stage);
    await Promise.all([1, 2, 3, 4, 5].map(() => newIndex(stage.catalog, stage.tenantId)));
    const nodes = await Promise.all([1, 2, 3].map(() => stage.newNode()));
    const sweep = () => Promise.all(nodes.map(({ catalog }) => catalog.claimSweep({ ageMs, limit: 2 })));
    expect((await sweep()).flat()).toEqual([]);
    await passHours(stage, 6);
    const named: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      named.push(...(await sweep()).flat().flatMap(({ indexId, isWasteful }) => (isWasteful ? indexId : [])));
    }
    expect(named).toEqual([stage.indexId]);
    const [due] = await queryDatabase(
      stage.url,
      `SELECT count(*)::integer AS indexes FROM indexes WHERE swept_at < now() - interval '1 hour'`,
    );
    expect(due).toEqual({ indexes: 0 });
  });

  it.each([1, 20])('leaves time to remove what is kept for %i h', (keptHours) => {
    const { wasteAgeMsMax, sweepAgeMs } = wasteAges(keptHours * hourMs);
    // The worst case: the index was open for almost that long, then closed, and swept just before the waste was due.
    expect(wasteAgeMsMax + sweepAgeMs + keptHours * hourMs).toBeLessThanOrEqual(23 * hourMs);
    // A death is forgotten when every node must have learned of it.
    expect(sweepAgeMs).toBeGreaterThanOrEqual(hourMs);
  });
});
