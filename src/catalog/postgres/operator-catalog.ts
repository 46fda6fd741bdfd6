/**
 * What operators ask of a catalog that nodes share, and its nodes never do. Connections of its own: it reads for long, and
 * is no part of serving.
 */
import { clusterStatus, type ClusterStatus } from './cluster-status.ts';
import { openDatabase, type Database } from './database.ts';

/** Documents whose records lie nowhere. */
export interface Unplaced {
  readonly segmentId: number;
  readonly documents: number;
}

export interface OperatorCatalog {
  /** Live documents that lie in no sealed segment of their index, by the segment that their rows name. */
  unplaced(indexId: string): Promise<readonly Unplaced[]>;
  status(): Promise<ClusterStatus>;
  close(): Promise<void>;
}

/** The catalog must have been opened by this release before: nothing is migrated here. */
export function openOperatorCatalog(url: string): OperatorCatalog {
  const database = openDatabase(url, () => undefined);
  return {
    unplaced: (indexId) => unplaced(database, indexId),
    status: () => clusterStatus(database),
    close: () => database.close(),
  };
}

async function unplaced(database: Database, indexId: string): Promise<readonly Unplaced[]> {
  return await database.rows<Unplaced & Record<string, unknown>>(
    {
      name: 'unplaced',
      text: `SELECT v.segment_id AS "segmentId", count(*) AS documents FROM versions v JOIN indexes i USING (index_key)
        WHERE i.id = $1 AND v.died = 0 AND NOT EXISTS (
          SELECT FROM segments s WHERE s.id = v.segment_id AND s.index_key = v.index_key AND s.state = 'sealed')
        GROUP BY v.segment_id ORDER BY v.segment_id`,
    },
    [indexId],
  );
}
