/** Live nodes, and their leases for merges. All times are by the clock of the database. */
import type { ClusterCatalog } from '../cluster-contract.ts';
import type { Database } from './database.ts';
import type { Epochs } from './epochs.ts';

type NodeCatalog = Pick<
  ClusterCatalog,
  'acquireMergeLease' | 'renewMergeLease' | 'releaseMergeLease' | 'heartbeat' | 'leave' | 'listNodes'
>;

const milliseconds = `interval '1 millisecond'`;

export function nodeCatalog(database: Database, epochs: Epochs, schemaVersion: number): NodeCatalog {
  return {
    async acquireMergeLease(indexId, nodeId, ttlMs) {
      const [row] = await database.rows<{ lease_fence: number; epoch: string }>(
        {
          name: 'acquire-lease',
          text: `UPDATE indexes SET lease_fence = lease_fence + (lease_node IS DISTINCT FROM $2)::integer,
              lease_node = $2, lease_until = now() + $3 * ${milliseconds}
            WHERE id = $1 AND (lease_until IS NULL OR lease_until < now() OR lease_node = $2)
            RETURNING lease_fence, epoch_1() AS epoch`,
        },
        [indexId, nodeId, ttlMs],
      );
      return row && { indexId, fence: row.lease_fence, epoch: row.epoch };
    },

    async renewMergeLease({ indexId, fence }, ttlMs) {
      const text = `UPDATE indexes SET lease_until = now() + $3 * ${milliseconds}
        WHERE id = $1 AND lease_fence = $2 RETURNING 1`;
      return (await database.rows({ name: 'renew-lease', text }, [indexId, fence, ttlMs])).length > 0;
    },

    async releaseMergeLease({ indexId, fence }) {
      const text = `UPDATE indexes SET lease_node = NULL, lease_until = NULL WHERE id = $1 AND lease_fence = $2`;
      await database.rows({ name: 'release-lease', text }, [indexId, fence]);
    },

    async heartbeat({ id, name, report }, liveMs) {
      const beat = `INSERT INTO nodes (id, name, report, schema_version) VALUES ($1, $2, $3, $4)
        ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen_at = now()`;
      await database.rows({ name: 'beat', text: beat }, [id, name, report, schemaVersion]);
      const text = `SELECT count(*) AS count, epoch_1() AS epoch FROM nodes
        WHERE seen_at > now() - $1 * ${milliseconds}`;
      const [row] = await database.rows<{ count: number; epoch: string }>({ name: 'count-nodes', text }, [
        liveMs,
      ]);
      if (row !== undefined) epochs.note(row.epoch);
      return row?.count ?? 1;
    },

    async leave(nodeId) {
      await database.rows({ name: 'leave', text: 'DELETE FROM nodes WHERE id = $1' }, [nodeId]);
    },

    async listNodes() {
      const rows = await database.rows<{
        id: string;
        name: string;
        report: string;
        started_at: Date;
        seen_ms_ago: number;
      }>({
        name: 'list-nodes',
        text: `SELECT id, name, report, started_at,
            (extract(epoch FROM now() - seen_at) * 1000)::bigint AS seen_ms_ago
          FROM nodes ORDER BY started_at, id`,
      });
      return rows.map(({ started_at: startedAt, seen_ms_ago: seenMsAgo, ...node }) => ({
        ...node,
        startedAtMs: startedAt.getTime(),
        seenMsAgo,
      }));
    },
  };
}
