/** Numbers for people on a catalog that nodes share, at one moment. Times are by the clock of the database. */
import { type Database, type Queries, statements } from '../database.ts';

export interface SegmentsInState {
  readonly state: 'uploading' | 'sealed' | 'replaced';
  readonly segments: number;
  readonly objects: number;
  readonly bytes: number;
  /** Seconds since the oldest of them came into this state; 0 = there is none. */
  readonly oldestSeconds: number;
}

export interface HeldLease {
  readonly indexId: string;
  readonly nodeId: string;
  /** Null when the node is gone. */
  readonly nodeName: string | null;
  readonly fence: number;
  readonly until: Date;
}

export interface ClusterStatus {
  readonly schemaVersion: number;
  readonly tenants: number;
  readonly indexes: number;
  readonly documents: number;
  /** One entry per state, in the order `uploading`, `sealed`, `replaced`. The objects of uploads are not known yet. */
  readonly segments: readonly SegmentsInState[];
  readonly leases: readonly HeldLease[];
}

const states = ['uploading', 'sealed', 'replaced'] as const;

const sql = statements({
  countAll: `SELECT (SELECT version FROM schema_version) AS "schemaVersion", (SELECT count(*) FROM tenants) AS tenants,
    count(*) AS indexes, coalesce(sum(documents_stored), 0)::bigint AS documents FROM indexes`,
  countSegments: `SELECT state, count(*) AS segments, sum(jsonb_array_length(files)) AS objects,
      coalesce(sum((SELECT sum((f ->> 'bytes')::bigint) FROM jsonb_array_elements(files) f)), 0)::bigint AS bytes,
      extract(epoch FROM now() - min(since))::bigint AS "oldestSeconds"
    FROM segments GROUP BY state`,
  listLeases: `SELECT i.id AS "indexId", lease_node AS "nodeId", n.name AS "nodeName", lease_fence AS fence,
      lease_until AS until
    FROM indexes i LEFT JOIN nodes n ON n.id = lease_node WHERE lease_until > now() ORDER BY i.id`,
});

export function clusterStatus(database: Database): Promise<ClusterStatus> {
  return database.transaction(readStatus, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
}

async function readStatus(queries: Queries): Promise<ClusterStatus> {
  const [counts] = await queries.rows<Record<'schemaVersion' | 'tenants' | 'indexes' | 'documents', number>>(
    sql.countAll,
  );
  const found = await queries.rows<SegmentsInState>(sql.countSegments);
  const leases = await queries.rows<HeldLease>(sql.listLeases);
  const none = { segments: 0, objects: 0, bytes: 0, oldestSeconds: 0 };
  return {
    ...counts!,
    segments: states.map((state) => found.find((row) => row.state === state) ?? { state, ...none }),
    leases,
  };
}
