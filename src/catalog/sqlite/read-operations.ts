/**
 * Reads of the `versions` table: they may have to wait for the disk, so they run in reader threads.
 * (Tenants, keys and indexes are small and hot: `small-reads.ts`.)
 */
import type { IndexState, SegmentRow, SegmentState } from '../contract.ts';
import { ServiceError, assertInvariant } from '../../errors.ts';
import type { Connection } from './connection.ts';

export interface VersionRow {
  readonly versionId: number;
  readonly docId: string;
  readonly metadata: string;
}

type PlacedRow = readonly [segmentId: number, record: number, versionId: number, born: number, died: number];

export function readOperations(connection: Connection) {
  const selectIndex = connection.prepare<
    [string],
    { readonly index_key: number; readonly generation: number }
  >('SELECT index_key, generation FROM indexes WHERE id = ?');
  const isStored = connection
    .prepare<[number, string], number>(
      'SELECT 1 FROM versions INDEXED BY versions_live WHERE index_key = ? AND doc_id = ? AND died = 0',
    )
    .pluck();
  const selectVersion = connection.prepare<[number, number], VersionRow>(
    'SELECT version_id AS versionId, doc_id AS docId, metadata FROM versions WHERE version_id = ? AND index_key = ?',
  );
  const selectSegments = connection.prepare<
    [number],
    { readonly id: number; readonly blob: string; readonly state: SegmentState }
  >('SELECT id, blob, state FROM segments WHERE index_key = ? ORDER BY id');
  const highestRecord = connection
    .prepare<[number, number], number | null>(
      'SELECT max(record) FROM versions INDEXED BY versions_placed WHERE index_key = ? AND segment_id = ?',
    )
    .pluck();
  const countPlaced = connection
    .prepare<[number], number>(
      'SELECT count(*) FROM versions INDEXED BY versions_placed WHERE index_key = ? AND segment_id > 0',
    )
    .pluck();
  const selectPlaced = connection
    .prepare<[number]>(
      `SELECT segment_id, record, version_id, born, died FROM versions INDEXED BY versions_placed
       WHERE index_key = ? AND segment_id > 0 ORDER BY segment_id, record`,
    )
    .raw();

  const loadVersions = (indexKey: number): IndexState['versions'] => {
    const count = countPlaced.get(indexKey) ?? 0;
    const versions = {
      segmentIds: new Float64Array(count),
      records: new Uint32Array(count),
      versionIds: new Float64Array(count),
      born: new Float64Array(count),
      died: new Float64Array(count),
    };
    let row = 0;
    let segmentBefore = 0;
    let recordBefore = 0;
    for (const columns of selectPlaced.iterate(indexKey) as IterableIterator<PlacedRow>) {
      const [segmentId, record, versionId, born, died] = columns;
      assertInvariant(
        segmentId !== segmentBefore || record !== recordBefore,
        `two versions lie at record ${record} of segment ${segmentId}`,
      );
      versions.segmentIds[row] = segmentId;
      versions.records[row] = record;
      versions.versionIds[row] = versionId;
      versions.born[row] = born;
      versions.died[row] = died;
      segmentBefore = segmentId;
      recordBefore = record;
      row++;
    }
    assertInvariant(row === count, 'a read transaction sees one state');
    return versions;
  };

  const loadSegments = (indexId: string, indexKey: number): readonly SegmentRow[] =>
    selectSegments.all(indexKey).map(({ id, blob, state }) => {
      const highest = highestRecord.get(indexKey, id) ?? null;
      return { id, indexId, blob, state, recordsReferenced: highest === null ? 0 : highest + 1 };
    });

  const loadIndexState = connection.transaction((indexId: string): IndexState => {
    const index = selectIndex.get(indexId);
    if (index === undefined) throw new ServiceError('not_found', 'the index does not exist');
    return {
      generation: index.generation,
      segments: loadSegments(indexId, index.index_key),
      versions: loadVersions(index.index_key),
    };
  });

  return {
    countStored(input: { readonly indexId: string; readonly docIds: readonly string[] }): number {
      const index = selectIndex.get(input.indexId);
      if (index === undefined) return 0;
      return input.docIds.filter((docId) => isStored.get(index.index_key, docId) !== undefined).length;
    },

    resolveVersions(input: {
      readonly indexId: string;
      readonly versionIds: readonly number[];
    }): readonly VersionRow[] {
      const index = selectIndex.get(input.indexId);
      if (index === undefined) return [];
      return input.versionIds.flatMap((versionId) => selectVersion.get(versionId, index.index_key) ?? []);
    },

    loadIndexState: (indexId: string): IndexState => loadIndexState(indexId),
  };
}

export type ReadOperations = ReturnType<typeof readOperations>;
