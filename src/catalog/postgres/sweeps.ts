/** Sweeps over all indexes, so that what was deleted goes from those, too, that no node has open. */
import type { ClusterCatalog } from '../cluster-contract.ts';
import type { Database } from './database.ts';

interface Swept extends Record<string, unknown> {
  readonly id: string;
  /** The generation at the sweep before. */
  readonly passed: number;
  /** It has deaths that were there then. */
  readonly is_forgettable: boolean;
  /** Its segments hold records of no live document. */
  readonly is_wasteful: boolean;
}

const claim = {
  name: 'claim-sweep',
  text: `
WITH due AS (
    SELECT index_key, swept_generation FROM indexes WHERE swept_at < now() - $1 * interval '1 millisecond'
    ORDER BY swept_at LIMIT $2 FOR UPDATE SKIP LOCKED),
  claimed AS (
    UPDATE indexes i SET swept_at = now(), swept_generation = i.generation FROM due
    WHERE i.index_key = due.index_key
    RETURNING i.id, i.index_key, i.documents_stored, due.swept_generation)
SELECT id, swept_generation AS passed,
  EXISTS (SELECT FROM versions v
    WHERE v.index_key = c.index_key AND v.died > 0 AND v.died <= c.swept_generation) AS is_forgettable,
  documents_stored < (SELECT coalesce(sum(records_sealed), 0) FROM segments s
    WHERE s.index_key = c.index_key AND s.state = 'sealed') AS is_wasteful
FROM claimed c`,
};

export function sweepCatalog(database: Database): Pick<ClusterCatalog, 'claimSweep'> {
  return {
    async claimSweep({ ageMs, limit }) {
      const swept = await database.rows<Swept>(claim, [ageMs, limit]);
      return swept.map(({ id, passed, is_forgettable: isForgettable, is_wasteful: isWasteful }) => ({
        indexId: id,
        isWasteful,
        ...(isForgettable && { forgettable: passed }),
      }));
    },
  };
}
