/** Live nodes, and their leases for merges. All times are by the clock of the database. */
import type { ClusterCatalog } from '../cluster-contract.ts';
import { type Database, statements } from './database.ts';
import { assertEpoch, type Epochs } from './reads/epochs.ts';

const milliseconds = `interval '1 millisecond'`;

const sql = statements({
  acquireLease: `UPDATE indexes SET lease_fence = lease_fence + (lease_node IS DISTINCT FROM $2)::integer,
      lease_node = $2, lease_until = now() + $3 * ${milliseconds}
    WHERE id = $1 AND (lease_until IS NULL OR lease_until < now() OR lease_node = $2)
    RETURNING lease_fence, epoch_1() AS epoch`,
  listNodes: `SELECT id, name, report, started_at,
      (extract(epoch FROM now() - seen_at) * 1000)::bigint AS seen_ms_ago
    FROM nodes ORDER BY started_at, id`,
  leave: 'DELETE FROM nodes WHERE id = $1',
  renewLease: `UPDATE indexes SET lease_until = now() + $3 * ${milliseconds}
    WHERE id = $1 AND lease_fence = $2 RETURNING 1`,
  releaseLease: `UPDATE indexes SET lease_node = NULL, lease_until = NULL WHERE id = $1 AND lease_fence = $2`,
  beat: `INSERT INTO nodes (id, name, report, schema_version) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen_at = now()`,
  liveNodes: `SELECT id, report, epoch_1() AS epoch FROM nodes
    WHERE seen_at > now() - $1 * ${milliseconds}`,
});

export function nodeCatalog(database: Database, epochs: Epochs, schemaVersion: number) {
  return {
    async acquireMergeLease(indexId, nodeId, ttlMs) {
      const [row] = await database.rows<{ lease_fence: number; epoch: string }>(sql.acquireLease, [
        indexId,
        nodeId,
        ttlMs,
      ]);
      if (row === undefined) return undefined;
      assertEpoch(row.epoch);
      return { indexId, fence: row.lease_fence, epoch: row.epoch };
    },

    async renewMergeLease({ indexId, fence }, ttlMs) {
      return (await database.rows(sql.renewLease, [indexId, fence, ttlMs])).length > 0;
    },

    async releaseMergeLease({ indexId, fence }) {
      await database.rows(sql.releaseLease, [indexId, fence]);
    },

    async heartbeat({ id, name, report }, liveMs) {
      await database.rows(sql.beat, [id, name, report, schemaVersion]);
      const live = await database.rows<{ id: string; report: string; epoch: string }>(sql.liveNodes, [
        liveMs,
      ]);
      if (live[0] !== undefined) epochs.note(live[0].epoch);
      return live.filter((node) => node.id !== id).map((node) => node.report);
    },

    async leave(nodeId) {
      await database.rows(sql.leave, [nodeId]);
    },

    async listNodes() {
      const rows = await database.rows<{
        id: string;
        name: string;
        report: string;
        started_at: Date;
        seen_ms_ago: number;
      }>(sql.listNodes);
      return rows.map(({ started_at: startedAt, seen_ms_ago: seenMsAgo, ...node }) => ({
        ...node,
        startedAtMs: startedAt.getTime(),
        seenMsAgo,
      }));
    },
  } satisfies Partial<ClusterCatalog>;
}
