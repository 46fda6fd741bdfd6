/**
 * All versions of an index, as columns, for opening it. A column comes from SQLite as one JSON text: parsing that is several
 * times as fast as fetching rows one by one, and an index of a million documents must open within a second.
 */
import type { IndexState, SegmentState } from '../../../contracts/index-state.ts';
import { ServiceError, assertInvariant } from '../../../errors.ts';
import { damage, type Connection } from '../connection.ts';

/** The versions of a segment, ordered by record. The last columns are JSON arrays. */
type PlacedRow = readonly [
  count: number,
  highestRecord: number | null,
  lastDeath: number | null,
  versionIds: string,
  born: string,
];

interface PlacedVersions {
  readonly segmentId: number;
  readonly recordsReferenced: number;
  readonly live: number;
  readonly records: Uint32Array;
  readonly versionIds: readonly number[];
  readonly born: readonly number[];
  /** Empty when all versions are alive. */
  readonly died: readonly number[];
}

const placed = `versions INDEXED BY versions_placed WHERE index_key = ? AND segment_id = ? ORDER BY record`;

/** Returns the function that reads the versions of a segment. */
function segmentReader(connection: Connection): (indexKey: number, segmentId: number) => PlacedVersions {
  const selectPlaced = connection
    .prepare<[number, number], PlacedRow>(
      `SELECT count(*), max(record), max(died), json_group_array(version_id), json_group_array(born)
       FROM (SELECT record, version_id, born, died FROM ${placed})`,
    )
    .raw();
  const columnReader = (column: 'record' | 'died') =>
    connection
      .prepare<[number, number], string>(
        `SELECT json_group_array(${column}) FROM (SELECT ${column} FROM ${placed})`,
      )
      .pluck();
  const selectRecords = columnReader('record');
  const selectDied = columnReader('died');

  return (indexKey, segmentId) => {
    const row = selectPlaced.get(indexKey, segmentId);
    assertInvariant(row !== undefined, 'an aggregate has one row');
    const [count, highestRecord, lastDeath, versionIds, born] = row;
    const recordsReferenced = (highestRecord ?? -1) + 1;
    // A merge leaves a segment without gaps and without deaths. Then records and deaths are known without a query.
    const records =
      recordsReferenced === count
        ? new Uint32Array(count).map((_, place) => place)
        : Uint32Array.from(numbersOf(selectRecords.get(indexKey, segmentId)));
    const doubled = records.findIndex((record, place) => record === records[place - 1]);
    assertInvariant(doubled === -1, `two versions lie at record ${records[doubled]} of segment ${segmentId}`);
    const died = (lastDeath ?? 0) === 0 ? [] : numbersOf(selectDied.get(indexKey, segmentId));
    return {
      segmentId,
      recordsReferenced,
      live: died.reduce((alive, generation) => alive - (generation === 0 ? 0 : 1), count),
      records,
      versionIds: numbersOf(versionIds),
      born: numbersOf(born),
      died,
    };
  };
}

/** Returns the function that reads an index at one moment. It throws damage where documents are missing. */
export function stateReader(connection: Connection): (indexId: string) => IndexState {
  const selectIndex = connection.prepare<
    [string],
    { readonly index_key: number; readonly generation: number; readonly documents_stored: number }
  >('SELECT index_key, generation, documents_stored FROM indexes WHERE id = ?');
  const selectSegments = connection.prepare<
    [number],
    { readonly id: number; readonly blob: string; readonly state: SegmentState }
  >('SELECT id, blob, state FROM segments WHERE index_key = ? ORDER BY id');
  const readSegment = segmentReader(connection);

  return connection.transaction((indexId: string): IndexState => {
    const index = selectIndex.get(indexId);
    if (index === undefined) throw new ServiceError('not_found', 'the index does not exist');
    const segments = selectSegments.all(index.index_key);
    const found = segments.map(({ id }) => readSegment(index.index_key, id));
    const live = found.reduce((sum, segment) => sum + segment.live, 0);
    if (live !== index.documents_stored) {
      throw damage(`index ${indexId} has ${live} documents where its row says ${index.documents_stored}`);
    }
    return {
      generation: index.generation,
      segments: segments.map((segment, place) => ({
        ...segment,
        indexId,
        recordsReferenced: found[place]?.recordsReferenced ?? 0,
      })),
      versions: columnsOf(found),
    };
  });
}

function columnsOf(segments: readonly PlacedVersions[]): IndexState['versions'] {
  const count = segments.reduce((sum, { records }) => sum + records.length, 0);
  const columns = {
    segmentIds: new Float64Array(count),
    records: new Uint32Array(count),
    versionIds: new Float64Array(count),
    born: new Float64Array(count),
    died: new Float64Array(count),
  };
  let first = 0;
  for (const { segmentId, records, versionIds, born, died } of segments) {
    columns.segmentIds.fill(segmentId, first, first + records.length);
    columns.records.set(records, first);
    columns.versionIds.set(versionIds, first);
    columns.born.set(born, first);
    columns.died.set(died, first);
    first += records.length;
  }
  return columns;
}

function numbersOf(json: string | undefined): readonly number[] {
  return JSON.parse(json ?? '[]') as readonly number[];
}
