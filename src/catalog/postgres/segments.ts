/** Segments of an index: what a node reads, what a merge changes, and what is garbage. */
import type { ChangesInput, ClusterCatalog } from '../cluster-contract.ts';
import { assertInvariant, ServiceError } from '../../errors.ts';
import type { IndexChanges, IndexHead, IndexState, NamedSegment, SegmentFile } from '../../index-state.ts';
import type { Database, Queries } from './database.ts';
import { HeadReader } from './head-reader.ts';

type SegmentCatalog = Pick<
  ClusterCatalog,
  | 'countStored'
  | 'resolveVersions'
  | 'createSegment'
  | 'sealSegment'
  | 'loadIndexState'
  | 'swapSegments'
  | 'forgetDeadVersions'
  | 'readHead'
  | 'changesSince'
  | 'swapMerged'
  | 'collectGarbage'
  | 'forgetGarbage'
>;

/** `versions` as JSON arrays in one order: parsing them is several times as fast as fetching rows. */
const columns = `json_build_object(
  'segmentIds', coalesce(json_agg(segment_id), '[]'), 'records', coalesce(json_agg(record), '[]'),
  'versionIds', coalesce(json_agg(version_id), '[]'), 'born', coalesce(json_agg(born), '[]'),
  'died', coalesce(json_agg(died), '[]'))`;

type Columns = Readonly<Record<keyof IndexState['versions'], readonly number[]>>;

interface ChangesRow extends Record<string, unknown>, IndexHead {
  readonly forgotten: number;
  readonly segments: readonly {
    readonly id: number;
    readonly blob: string;
    readonly records: number;
    readonly files: readonly SegmentFile[];
  }[];
  readonly versions: Columns;
  readonly died: Columns;
}

const changes = {
  name: 'changes-since',
  text: `
WITH i AS (SELECT index_key, generation, layout, forgotten FROM indexes WHERE id = $1),
  s AS (SELECT s.* FROM segments s JOIN i USING (index_key) WHERE s.state = 'sealed' ORDER BY s.id)
SELECT i.generation, i.layout, i.forgotten,
  (SELECT coalesce(json_agg(json_build_object('id', id, 'blob', blob, 'records', records_sealed, 'files', files)), '[]')
    FROM s) AS segments,
  (SELECT ${columns} FROM (SELECT v.* FROM s CROSS JOIN LATERAL (
      SELECT * FROM versions v WHERE v.index_key = s.index_key AND v.segment_id = s.id) v
    WHERE NOT s.id = ANY($3) ORDER BY v.segment_id, v.record) v) AS versions,
  (SELECT ${columns} FROM versions v
    WHERE v.index_key = i.index_key AND v.died > 0 AND v.died > $2 AND v.segment_id = ANY($3)) AS died
FROM i`,
};

const forgetRowsMax = 5_000;

export function segmentCatalog(database: Database): SegmentCatalog {
  const heads = new HeadReader(database);
  return {
    async countStored(indexId, docIds) {
      const text = `SELECT count(*) AS count FROM versions JOIN indexes USING (index_key)
        WHERE indexes.id = $1 AND died = 0 AND doc_id = ANY($2)`;
      const [row] = await database.rows<{ count: number }>({ name: 'count-stored', text }, [
        indexId,
        docIds.map((docId) => Buffer.from(docId)),
      ]);
      return row?.count ?? 0;
    },

    async resolveVersions(indexId, versionIds) {
      const rows = await database.rows<{ version_id: number; doc_id: Buffer; metadata: string }>(
        {
          name: 'resolve-versions',
          text: `SELECT version_id, doc_id, metadata FROM versions JOIN indexes USING (index_key)
            WHERE indexes.id = $1 AND version_id = ANY($2) ORDER BY array_position($2::bigint[], version_id)`,
        },
        [indexId, versionIds],
      );
      return new Map(
        rows.map(({ version_id: id, doc_id: docId, metadata }) => [
          id,
          { docId: docId.toString(), metadata },
        ]),
      );
    },

    async createSegment({ id, indexId, blob }) {
      const text = `INSERT INTO segments (id, index_key, blob, state)
        SELECT $1, index_key, $3, 'uploading' FROM indexes WHERE id = $2 RETURNING id`;
      const rows = await database.rows({ name: 'create-segment', text }, [id, indexId, blob]);
      if (rows.length === 0) throw missing();
    },

    async sealSegment(segmentId, records) {
      const text = `UPDATE segments SET state = 'sealed', records_sealed = $2, since = now()
        WHERE id = $1 AND state = 'uploading' RETURNING id`;
      const rows = await database.rows({ name: 'seal-segment', text }, [segmentId, records]);
      if (rows.length === 0) throw new ServiceError('not_found', 'there is no such active segment');
    },

    loadIndexState: (indexId) => loadIndexState(database, indexId),
    swapSegments: (input) => database.transaction((queries) => swapSegments(queries, input)),

    async forgetDeadVersions(indexId, generation) {
      const raise = `UPDATE indexes SET forgotten = greatest(forgotten, least($2, generation)) WHERE id = $1
        RETURNING index_key`;
      const [index] = await database.rows<{ index_key: number }>({ name: 'raise-forgotten', text: raise }, [
        indexId,
        generation,
      ]);
      if (index === undefined) return 0;
      const text = `DELETE FROM versions WHERE version_id = ANY(ARRAY(
          SELECT version_id FROM versions WHERE index_key = $1 AND died > 0 AND died <= $2 LIMIT ${forgetRowsMax}))
        RETURNING 1`;
      for (let forgotten = 0; ;) {
        const { length } = await database.rows({ name: 'forget-versions', text }, [
          index.index_key,
          generation,
        ]);
        forgotten += length;
        if (length < forgetRowsMax) return forgotten;
      }
    },

    readHead: (indexId) => heads.read(indexId),

    async changesSince({ indexId, generation, segmentIds }: ChangesInput) {
      const [row] = await database.rows<ChangesRow>(changes, [indexId, generation, segmentIds]);
      if (row === undefined) return undefined;
      if (generation >= 0 && generation < row.forgotten) return 'reopen';
      return changesOf(row);
    },

    async swapMerged({ lease, removedSegmentIds, target, moves }) {
      const [row] = await database.rows<{ swapped: boolean }>(
        { name: 'swap-merged', text: 'SELECT swap_merged_1($1, $2, $3, $4, $5, $6, $7, $8) AS swapped' },
        [
          lease.indexId,
          lease.fence,
          removedSegmentIds,
          target?.id,
          target?.records,
          JSON.stringify(target?.files ?? []),
          [...moves.versionIds],
          [...moves.records],
        ],
      );
      return row?.swapped === true;
    },

    // From here on no late commit can name an upload that is about to go: it finds the segment replaced.
    async collectGarbage({ keptMs, limit }) {
      const rows = await database.rows<{ id: number; blob: string }>(
        {
          name: 'collect-garbage',
          text: `UPDATE segments SET collected_at = now(), state = 'replaced' WHERE id IN (
              SELECT id FROM segments
              WHERE (state = 'uploading' AND since < now() - interval '1 day'
                  OR state = 'replaced' AND since < now() - $1 * interval '1 millisecond')
                AND (collected_at IS NULL OR collected_at < now() - interval '10 minutes')
              LIMIT $2 FOR UPDATE SKIP LOCKED)
            RETURNING id, blob`,
        },
        [keptMs, limit],
      );
      return rows.map(({ id, blob }) => ({ segmentId: id, blob }));
    },

    async forgetGarbage(segmentIds) {
      const text = `DELETE FROM segments WHERE id = ANY($1) AND state <> 'sealed'`;
      await database.rows({ name: 'forget-garbage', text }, [segmentIds]);
    },
  };
}

async function loadIndexState(database: Database, indexId: string): Promise<IndexState> {
  const [row] = await database.rows<{
    generation: number;
    segments: readonly { id: number; blob: string; state: 'active' | 'sealed'; highest: number | null }[];
    versions: Columns;
  }>(
    {
      name: 'load-index-state',
      text: `
WITH i AS (SELECT index_key, generation FROM indexes WHERE id = $1)
SELECT generation,
  (SELECT coalesce(json_agg(s ORDER BY id), '[]') FROM (
    SELECT id, blob, CASE state WHEN 'sealed' THEN 'sealed' ELSE 'active' END AS state,
      (SELECT max(record) FROM versions v WHERE v.index_key = i.index_key AND v.segment_id = segments.id) AS highest
    FROM segments WHERE index_key = i.index_key AND state <> 'replaced') s) AS segments,
  (SELECT ${columns} FROM (
    SELECT * FROM versions v WHERE v.index_key = i.index_key AND segment_id > 0 ORDER BY segment_id, record) v
  ) AS versions
FROM i`,
    },
    [indexId],
  );
  if (row === undefined) throw missing();
  return {
    generation: row.generation,
    segments: row.segments.map(({ id, blob, state, highest }) => ({
      id,
      blob,
      state,
      indexId,
      recordsReferenced: (highest ?? -1) + 1,
    })),
    versions: versionsOf(row.versions),
  };
}

async function swapSegments(
  queries: Queries,
  { indexId, removedSegmentIds, moves }: Parameters<ClusterCatalog['swapSegments']>[0],
): Promise<void> {
  const [index] = await queries.rows<{ index_key: number }>(
    { name: 'lock-index', text: 'SELECT index_key FROM indexes WHERE id = $1 FOR UPDATE' },
    [indexId],
  );
  if (index === undefined) throw missing();
  const key = index.index_key;
  await queries.rows(
    {
      name: 'move-versions',
      text: `UPDATE versions v SET segment_id = m.segment_id, record = m.record
        FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS m(version_id, segment_id, record)
        WHERE v.version_id = m.version_id AND v.index_key = $1`,
    },
    [
      key,
      moves.map(({ versionId }) => versionId),
      moves.map(({ to }) => to.segmentId),
      moves.map(({ to }) => to.record),
    ],
  );
  const live = await queries.rows(
    {
      name: 'live-left-behind',
      text: 'SELECT 1 FROM versions WHERE index_key = $1 AND segment_id = ANY($2) AND died = 0 LIMIT 1',
    },
    [key, removedSegmentIds],
  );
  assertInvariant(live.length === 0, 'a removed segment still holds live versions');
  const detach =
    'UPDATE versions SET segment_id = 0, record = 0 WHERE index_key = $1 AND segment_id = ANY($2)';
  await queries.rows({ name: 'detach-dead', text: detach }, [key, removedSegmentIds]);
  const replace = `UPDATE segments SET state = 'replaced', since = now()
    WHERE index_key = $1 AND id = ANY($2) AND state <> 'replaced' RETURNING id`;
  const removed = await queries.rows({ name: 'replace-removed', text: replace }, [key, removedSegmentIds]);
  assertInvariant(removed.length === removedSegmentIds.length, 'removed segments are of this index');
  const raise = 'UPDATE indexes SET layout = layout + 1 WHERE index_key = $1';
  await queries.rows({ name: 'raise-layout', text: raise }, [key]);
}

function changesOf({ generation, layout, segments, versions, died }: ChangesRow): IndexChanges {
  return {
    generation,
    layout,
    segments: segments.map((segment): NamedSegment => segment),
    versions: versionsOf(versions),
    died: {
      segmentIds: Float64Array.from(died.segmentIds),
      records: Uint32Array.from(died.records),
      died: Float64Array.from(died.died),
    },
  };
}

function versionsOf({ segmentIds, records, versionIds, born, died }: Columns): IndexState['versions'] {
  return {
    segmentIds: Float64Array.from(segmentIds),
    records: Uint32Array.from(records),
    versionIds: Float64Array.from(versionIds),
    born: Float64Array.from(born),
    died: Float64Array.from(died),
  };
}

function missing(): ServiceError {
  return new ServiceError('not_found', 'the index does not exist');
}
