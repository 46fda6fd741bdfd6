/** Sweeps over all indexes, also those that no node has open; and the garbage that merges and deletions leave. */
import type { ClusterCatalog, GarbageBlob } from '../cluster-contract.ts';
import { type Database, statements } from './database.ts';

interface Swept {
  readonly id: string;
  readonly tenant_id: string;
  /** The generation at the sweep before. */
  readonly passed: number;
  /** It has deaths that were there then. */
  readonly is_forgettable: boolean;
  /** Its segments hold records of no live document. */
  readonly is_wasteful: boolean;
}

const batchRows = 5_000;
const sql = statements({
  claimSweep: `
WITH due AS (
    SELECT index_key, swept_generation FROM indexes WHERE swept_at < now() - $1 * interval '1 millisecond'
    ORDER BY swept_at LIMIT $2 FOR UPDATE SKIP LOCKED),
  claimed AS (
    UPDATE indexes i SET swept_at = now(), swept_generation = i.generation FROM due
    WHERE i.index_key = due.index_key
    RETURNING i.id, i.tenant_id, i.index_key, i.documents_stored, due.swept_generation)
SELECT id, tenant_id, swept_generation AS passed,
  EXISTS (SELECT FROM versions v
    WHERE v.index_key = c.index_key AND v.died > 0 AND v.died <= c.swept_generation) AS is_forgettable,
  documents_stored < (SELECT coalesce(sum(records_sealed), 0) FROM segments s
    WHERE s.index_key = c.index_key AND s.state = 'sealed') AS is_wasteful
FROM claimed c`,
  /** The first read of a commit finds the segment replaced. So no late commit can name an upload that is being deleted. */
  collectGarbage: `UPDATE segments SET collected_at = now(), state = 'replaced' WHERE id IN (
      SELECT id FROM segments
      WHERE (state = 'uploading' AND since < now() - interval '1 day'
          OR state = 'replaced' AND since < now() - $1 * interval '1 millisecond')
        AND (collected_at IS NULL OR collected_at < now() - interval '10 minutes')
      LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING id AS "segmentId", blob`,
  forgetPlacements: `DELETE FROM placements WHERE ctid = ANY(ARRAY(
      SELECT p.ctid FROM segments s JOIN placements p ON p.segment_id = s.id
      WHERE s.id = ANY($1) AND s.state <> 'sealed' LIMIT ${batchRows})) RETURNING 1`,
  forgetGarbage: `DELETE FROM segments WHERE id = ANY($1) AND state <> 'sealed'`,
});

export function sweepCatalog(database: Database) {
  return {
    async claimSweep({ ageMs, limit }) {
      const swept = await database.rows<Swept>(sql.claimSweep, [ageMs, limit]);
      return swept.map((row) => ({
        indexId: row.id,
        tenantId: row.tenant_id,
        isWasteful: row.is_wasteful,
        ...(row.is_forgettable && { forgettable: row.passed }),
      }));
    },

    collectGarbage: ({ keptMs, limit }) => database.rows<GarbageBlob>(sql.collectGarbage, [keptMs, limit]),

    async forgetGarbage(segmentIds) {
      while ((await database.rows(sql.forgetPlacements, [segmentIds])).length > 0);
      await database.rows(sql.forgetGarbage, [segmentIds]);
    },
  } satisfies Partial<ClusterCatalog>;
}
