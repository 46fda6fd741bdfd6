/** Documents whose records lie in no segment. There should be none. */
import { type Queries, statements } from '../database.ts';

export interface Unplaced {
  readonly indexId: string;
  /** The last segment that held them; 0 = none is known. */
  readonly segmentId: number;
  readonly documents: number;
}

const sql = statements({
  unplaced: `SELECT i.id AS "indexId", coalesce((
        SELECT max(p.segment_id) FROM placements p WHERE p.version_id = v.version_id), 0) AS "segmentId",
      count(*) AS documents
    FROM versions v JOIN indexes i USING (index_key)
    WHERE ($1::text IS NULL OR i.id = $1) AND v.died = 0 AND NOT EXISTS (
      SELECT FROM placements p JOIN segments s ON s.id = p.segment_id
      WHERE p.version_id = v.version_id AND s.index_key = v.index_key AND s.state = 'sealed')
    GROUP BY 1, 2 ORDER BY 1, 2`,
});

/** Counts live documents that lie in no sealed segment of their index: of one index, or of all. */
export async function unplaced(queries: Queries, indexId?: string): Promise<readonly Unplaced[]> {
  return await queries.rows<Unplaced>(sql.unplaced, [indexId]);
}
