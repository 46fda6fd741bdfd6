/** Segments of an index: a node reads them, and merges replace them. */
import type { ClusterCatalog, ChangesInput } from '../cluster-contract.ts';
import { assertInvariant, ServiceError } from '../../errors.ts';
import type {
  CatalogSegment,
  IndexChanges,
  IndexHead,
  IndexState,
  Moves,
  SegmentFile,
} from '../../contracts/index-state.ts';
import { type Database, type Queries, statements } from './database.ts';
import type { Epochs } from './reads/epochs.ts';
import { placeNow } from './functions.ts';
import { HeadReader } from './reads/head-reader.ts';

/** Columns as JSON arrays: parsing them is several times as fast as fetching rows. All have the same order. */
const deathColumns = `'segmentIds', coalesce(json_agg(segment_id), '[]'), 'records', coalesce(json_agg(record), '[]'),
  'died', coalesce(json_agg(died), '[]')`;
const deaths = `json_build_object(${deathColumns})`;
const columns = `json_build_object(${deathColumns}, 'versionIds', coalesce(json_agg(version_id), '[]'),
  'born', coalesce(json_agg(born), '[]'))`;

type Versions = IndexState['versions'];
type Columns = Readonly<Record<keyof Versions, ArrayLike<number>>>;

/** Versions are read in pages of so many. Parsing a page keeps the event loop for some 10 ms. */
const pageRows = 20_000;

interface ChangesRow extends IndexHead {
  readonly forgotten: number;
  readonly segments: readonly {
    readonly id: number;
    readonly blob: string;
    readonly records: number;
    readonly files: readonly SegmentFile[];
  }[];
  readonly versions: Readonly<Record<keyof Versions, readonly number[]>>;
  readonly died: Readonly<Record<keyof IndexChanges['died'], readonly number[]>>;
}

const batchRows = 5_000;
const oneMoment = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

const sql = statements({
  changesSince: `
WITH i AS (SELECT index_key, generation, layout, forgotten FROM indexes WHERE id = $1),
  s AS (SELECT s.* FROM segments s JOIN i USING (index_key) WHERE s.state = 'sealed' ORDER BY s.id)
SELECT i.generation, i.layout, i.forgotten, epoch_1() AS epoch,
  (SELECT coalesce(json_agg(json_build_object('id', id, 'blob', blob, 'records', records_sealed, 'files', files)), '[]')
    FROM s) AS segments,
  (SELECT ${columns} FROM (SELECT p.segment_id, p.record, v.* FROM s
    CROSS JOIN LATERAL (SELECT * FROM placements p WHERE p.segment_id = s.id) p
    JOIN versions v ON v.version_id = p.version_id
    WHERE NOT s.id = ANY($3) ORDER BY p.segment_id, p.record LIMIT $4) v) AS versions,
  (SELECT ${deaths} FROM versions v JOIN placements p USING (version_id)
    WHERE v.index_key = i.index_key AND v.died > 0 AND v.died > $2 AND p.segment_id = ANY($3)) AS died
FROM i`,
  versionsOfSegment: `SELECT ${columns} AS page FROM (SELECT p.segment_id, p.record, v.* FROM placements p
    JOIN versions v ON v.version_id = p.version_id
    WHERE p.segment_id = $1 AND p.record > $2 ORDER BY p.record LIMIT ${pageRows}) v`,
  createSegment: `INSERT INTO segments (id, index_key, blob, state)
    SELECT $1, index_key, $3, 'uploading' FROM indexes WHERE id = $2 RETURNING id`,
  sealSegment: `UPDATE segments SET state = 'sealed', records_sealed = $2, since = now()
    WHERE id = $1 AND state = 'uploading' RETURNING id`,
  loadIndexState: `
WITH i AS (SELECT index_key, generation FROM indexes WHERE id = $1)
SELECT generation,
  (SELECT coalesce(json_agg(s ORDER BY id), '[]') FROM (
    SELECT id, blob, CASE state WHEN 'sealed' THEN 'sealed' ELSE 'active' END AS state,
      (SELECT max(record) FROM placements p JOIN versions USING (version_id) WHERE p.segment_id = segments.id) AS highest
    FROM segments WHERE index_key = i.index_key AND state <> 'replaced') s) AS segments,
  (SELECT ${columns} FROM (
    SELECT place.*, v.* FROM versions v CROSS JOIN ${placeNow} WHERE v.index_key = i.index_key
    ORDER BY place.segment_id, place.record) v) AS versions
FROM i`,
  raiseForgotten: `UPDATE indexes SET forgotten = greatest(forgotten, least($2, generation)) WHERE id = $1
    RETURNING least($2, generation) AS last`,
  // Nothing is deleted where the catalog fell back to an earlier moment, at which `forgotten` was less.
  forgetVersions: `DELETE FROM versions WHERE version_id = ANY(ARRAY(
      SELECT version_id FROM versions WHERE index_key = (SELECT index_key FROM indexes WHERE id = $1 AND forgotten >= $2)
        AND died > 0 AND died <= $2 LIMIT ${batchRows}))
    RETURNING 1`,
  swapMerged: 'SELECT swap_merged_2($1, $2, $3, $4, $5, $6, $7) AS swapped',
  place: `INSERT INTO placements (segment_id, record, version_id)
    SELECT $1, * FROM unnest($2::bigint[], $3::bigint[])`,
  liveLeftBehind: `SELECT 1 FROM placements p JOIN versions v ON v.version_id = p.version_id
    WHERE p.segment_id = ANY($1) AND v.died = 0 AND NOT EXISTS (
      SELECT FROM placements t WHERE t.version_id = p.version_id AND t.segment_id = $2)
    LIMIT 1`,
  lockIndex: 'SELECT index_key FROM indexes WHERE id = $1 FOR UPDATE',
  replaceRemoved: `UPDATE segments SET state = 'replaced', since = now()
    WHERE index_key = $1 AND id = ANY($2) AND state <> 'replaced' RETURNING id`,
  raiseLayout: 'UPDATE indexes SET layout = layout + 1 WHERE index_key = $1',
});

/** `openings`: for reads of whole indexes. */
export function segmentCatalog(database: Database, openings: Database, epochs: Epochs) {
  const heads = new HeadReader(database, epochs);
  return {
    async createSegment({ id, indexId, blob }) {
      if ((await database.rows(sql.createSegment, [id, indexId, blob])).length === 0) throw missing();
    },

    async sealSegment(segmentId, records) {
      const rows = await database.rows(sql.sealSegment, [segmentId, records]);
      if (rows.length === 0) throw new ServiceError('not_found', 'there is no such active segment');
    },

    loadIndexState: (indexId) => loadIndexState(openings, indexId),
    swapSegments: (input) => database.transaction((queries) => swapSegments(queries, input)),

    async forgetDeadVersions(indexId, generation) {
      const [index] = await database.rows<{ last: number }>(sql.raiseForgotten, [indexId, generation]);
      if (index === undefined) return 0;
      for (let forgotten = 0; ;) {
        const { length } = await database.rows(sql.forgetVersions, [indexId, index.last]);
        forgotten += length;
        if (length < batchRows) return forgotten;
      }
    },

    readHead: (indexId) => heads.read(indexId),
    changesSince: (input) => changesSince(input.generation < 0 ? openings : database, epochs, input),

    // Nobody reads what lies in a segment that is not named yet. So this needs no lock.
    placeVersions: (segmentId, moves) => place(database, segmentId, moves),

    async swapMerged({ lease, removedSegmentIds, target }) {
      await assertNoneLeft(database, removedSegmentIds, target?.id);
      const files = JSON.stringify(target?.files ?? []);
      const values = [lease.indexId, lease.fence, removedSegmentIds, target?.id, target?.records, files];
      const [row] = await database.rows<{ swapped: boolean }>(sql.swapMerged, [...values, lease.epoch]);
      return row?.swapped === true;
    },
  } satisfies Partial<ClusterCatalog>;
}

async function loadIndexState(database: Database, indexId: string): Promise<IndexState> {
  const [row] = await database.rows<{
    generation: number;
    segments: readonly { id: number; blob: string; state: 'active' | 'sealed'; highest: number | null }[];
    versions: Columns;
  }>(sql.loadIndexState, [indexId]);
  if (row === undefined) throw missing();
  return {
    generation: row.generation,
    segments: row.segments.map(({ highest, ...segment }) => ({
      ...segment,
      indexId,
      recordsReferenced: (highest ?? -1) + 1,
    })),
    versions: joined([row.versions]),
  };
}

async function changesSince(
  reader: Database,
  epochs: Epochs,
  { indexId, generation, segmentIds }: ChangesInput,
): ReturnType<ClusterCatalog['changesSince']> {
  const values = [indexId, generation, segmentIds];
  const [row] = await reader.rows<ChangesRow>(sql.changesSince, [...values, pageRows + 1]);
  if (row === undefined) return undefined;
  epochs.note(row.epoch);
  if (generation >= 0 && generation < row.forgotten) return 'reopen';
  if (row.versions.segmentIds.length <= pageRows) return changesOf(row, joined([row.versions]));
  return await reader.transaction(async (queries) => {
    const [now] = await queries.rows<ChangesRow>(sql.changesSince, [...values, 0]);
    if (now === undefined) return undefined;
    if (generation >= 0 && generation < now.forgotten) return 'reopen';
    const lacking = now.segments.filter(({ id }) => !segmentIds.includes(id));
    return changesOf(now, joined(await pagesOf(queries, lacking)));
  }, oneMoment);
}

async function swapSegments(
  queries: Queries,
  { indexId, removedSegmentIds, moves }: Parameters<ClusterCatalog['swapSegments']>[0],
): Promise<void> {
  const [index] = await queries.rows<{ index_key: number }>(sql.lockIndex, [indexId]);
  if (index === undefined) throw missing();
  const key = index.index_key;
  const [target] = new Set(moves.map(({ to }) => to.segmentId));
  if (target !== undefined) {
    await place(queries, target, {
      versionIds: Float64Array.from(moves, ({ versionId }) => versionId),
      records: Uint32Array.from(moves, ({ to }) => to.record),
    });
  }
  await assertNoneLeft(queries, removedSegmentIds, target);
  const removed = await queries.rows(sql.replaceRemoved, [key, removedSegmentIds]);
  assertInvariant(removed.length === removedSegmentIds.length, 'removed segments are of this index');
  await queries.rows(sql.raiseLayout, [key]);
}

/** Stores where versions lie in a segment that is not named yet. */
async function place(queries: Queries, segmentId: number, { versionIds, records }: Moves): Promise<void> {
  for (let first = 0; first < versionIds.length; first += batchRows) {
    const end = first + batchRows;
    await queries.rows(sql.place, [
      segmentId,
      [...records.subarray(first, end)],
      [...versionIds.subarray(first, end)],
    ]);
  }
}

/** Asserts that no live version lies in the removed segments alone. No version is born in a segment after it was named. */
async function assertNoneLeft(
  queries: Queries,
  removedSegmentIds: readonly number[],
  targetId: number | undefined,
): Promise<void> {
  const left = await queries.rows(sql.liveLeftBehind, [removedSegmentIds, targetId ?? null]);
  assertInvariant(left.length === 0, 'a removed segment still holds live versions');
}

async function pagesOf(
  queries: Queries,
  segments: readonly { readonly id: number }[],
): Promise<readonly Versions[]> {
  const pages: Versions[] = [];
  for (const { id } of segments) {
    for (let last = -1, isFull = true; isFull;) {
      const [row] = await queries.rows<{ page: Columns }>(sql.versionsOfSegment, [id, last]);
      assertInvariant(row !== undefined, 'an aggregate has one row');
      pages.push(joined([row.page]));
      last = pages.at(-1)?.records.at(-1) ?? last;
      isFull = row.page.records.length === pageRows;
    }
  }
  return pages;
}

function changesOf(
  { generation, layout, epoch, segments, died }: ChangesRow,
  versions: Versions,
): IndexChanges {
  return {
    generation,
    layout,
    epoch,
    segments: segments.map((segment): CatalogSegment => ({ ...segment, state: 'sealed' })),
    versions,
    died: {
      segmentIds: Float64Array.from(died.segmentIds),
      records: Uint32Array.from(died.records),
      died: Float64Array.from(died.died),
    },
  };
}

/** The columns of all pages, one page after the other. */
function joined(pages: readonly Columns[]): Versions {
  const count = pages.reduce((sum, { records }) => sum + records.length, 0);
  const fill = <Column extends Float64Array | Uint32Array>(column: Column, name: keyof Versions): Column => {
    let first = 0;
    for (const page of pages) {
      column.set(page[name], first);
      first += page[name].length;
    }
    return column;
  };
  return {
    segmentIds: fill(new Float64Array(count), 'segmentIds'),
    records: fill(new Uint32Array(count), 'records'),
    versionIds: fill(new Float64Array(count), 'versionIds'),
    born: fill(new Float64Array(count), 'born'),
    died: fill(new Float64Array(count), 'died'),
  };
}

function missing(): ServiceError {
  return new ServiceError('not_found', 'the index does not exist');
}
