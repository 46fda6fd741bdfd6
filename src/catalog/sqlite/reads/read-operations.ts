/**
 * Reads of the `versions` table: they may have to wait for the disk, so they run in reader threads.
 * (Tenants, keys and indexes are small and hot: `small-reads.ts`.)
 */
import type { DocumentVersion } from '../../../document-commits.ts';
import type { IndexState, SegmentState } from '../../../index-state.ts';
import { ServiceError, assertInvariant } from '../../../errors.ts';
import type { DocumentCount, DocumentPage, Page, StoredDocument } from '../../contract.ts';
import { damage, type Connection } from '../connection.ts';

/** Every read is of one index. */
export interface ReadInput {
  readonly indexId: string;
}

export interface VersionRow {
  readonly versionId: number;
  readonly docId: string;
  readonly metadata: string;
}

/** What a segment holds, ordered by record; the columns are JSON arrays. */
type PlacedRow = readonly [
  count: number,
  highestRecord: number | null,
  lastDeath: number | null,
  versionIds: string,
  born: string,
];

export function readOperations(connection: Connection) {
  const selectIndex = connection.prepare<
    [string],
    { readonly index_key: number; readonly generation: number; readonly documents_stored: number }
  >('SELECT index_key, generation, documents_stored FROM indexes WHERE id = ?');
  const isStored = connection
    .prepare<[number, string], number>(
      'SELECT 1 FROM versions INDEXED BY versions_live WHERE index_key = ? AND doc_id = ? AND died = 0',
    )
    .pluck();
  const selectVersion = connection.prepare<[number, number], VersionRow>(
    'SELECT version_id AS versionId, doc_id AS docId, metadata FROM versions WHERE version_id = ? AND index_key = ?',
  );
  // In order: what is asked for first is read, and no more.
  const selectDocuments = connection.prepare<[number, string], StoredDocument>(
    `SELECT doc_id AS docId, metadata, chunk_count AS chunkCount FROM versions INDEXED BY versions_live
     WHERE index_key = ? AND died = 0 AND doc_id > ? ORDER BY doc_id`,
  );
  const selectDocument = connection.prepare<[number, string], DocumentVersion>(
    `SELECT doc_id AS docId, version_id AS versionId, metadata, chunk_count AS chunkCount,
       token_vectors AS tokenVectors, segment_id AS segmentId, record
     FROM versions INDEXED BY versions_live WHERE index_key = ? AND doc_id = ? AND died = 0`,
  );
  const selectSegments = connection.prepare<
    [number],
    { readonly id: number; readonly blob: string; readonly state: SegmentState }
  >('SELECT id, blob, state FROM segments WHERE index_key = ? ORDER BY id');
  // Columns come as one text each: parsing JSON is several times as fast as fetching rows one by one, and an
  // index of a million documents must open within a second.
  const placed = `versions INDEXED BY versions_placed WHERE index_key = ? AND segment_id = ? ORDER BY record`;
  const selectPlaced = connection
    .prepare<[number, number], PlacedRow>(
      `SELECT count(*), max(record), max(died), json_group_array(version_id), json_group_array(born)
       FROM (SELECT record, version_id, born, died FROM ${placed})`,
    )
    .raw();
  const selectRecords = connection
    .prepare<[number, number], string>(`SELECT json_group_array(record) FROM (SELECT record FROM ${placed})`)
    .pluck();
  const selectDied = connection
    .prepare<[number, number], string>(`SELECT json_group_array(died) FROM (SELECT died FROM ${placed})`)
    .pluck();

  const loadPlaced = (indexKey: number, segmentId: number): PlacedVersions => {
    const row = selectPlaced.get(indexKey, segmentId);
    assertInvariant(row !== undefined, 'an aggregate has one row');
    const [count, highestRecord, lastDeath, versionIds, born] = row;
    const recordsReferenced = (highestRecord ?? -1) + 1;
    // Without gaps and without deaths, which is how merges leave segments, these two are known.
    const records =
      recordsReferenced === count
        ? numbersBelow(count)
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

  const loadIndexState = connection.transaction(({ indexId }: ReadInput): IndexState => {
    const index = selectIndex.get(indexId);
    if (index === undefined) throw new ServiceError('not_found', 'the index does not exist');
    const segments = selectSegments.all(index.index_key);
    const found = segments.map(({ id }) => loadPlaced(index.index_key, id));
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

  return {
    countStored(input: ReadInput & { readonly docIds: readonly string[] }): number {
      const index = selectIndex.get(input.indexId);
      if (index === undefined) return 0;
      return input.docIds.filter((docId) => isStored.get(index.index_key, docId) !== undefined).length;
    },

    resolveVersions(input: ReadInput & { readonly versionIds: readonly number[] }): readonly VersionRow[] {
      const index = selectIndex.get(input.indexId);
      if (index === undefined) return [];
      return input.versionIds.flatMap((versionId) => selectVersion.get(versionId, index.index_key) ?? []);
    },

    listDocuments(input: ReadInput & Page<string> & { readonly bytesMax: number }): DocumentPage | undefined {
      const index = selectIndex.get(input.indexId);
      if (index === undefined) return undefined;
      const documents: StoredDocument[] = [];
      let bytes = 0;
      for (const document of selectDocuments.iterate(index.index_key, input.after ?? '')) {
        if (documents.length === input.limit || bytes >= input.bytesMax) return { documents, hasMore: true };
        documents.push(document);
        bytes += Buffer.byteLength(document.metadata);
      }
      return { documents, hasMore: false };
    },

    findDocument(input: ReadInput & { readonly docId: string }): DocumentVersion | undefined {
      const index = selectIndex.get(input.indexId);
      return index && selectDocument.get(index.index_key, input.docId);
    },

    /** Prepared when it is asked for: commands also read catalogs of earlier releases, which have no such column. */
    countDocuments: ({ indexId }: ReadInput): DocumentCount | undefined =>
      connection
        .prepare<[string], DocumentCount>(
          'SELECT documents_stored AS documents, chunks_stored AS chunks FROM indexes WHERE id = ?',
        )
        .get(indexId),

    loadIndexState: (input: ReadInput): IndexState => loadIndexState(input),
  };
}

interface PlacedVersions {
  readonly segmentId: number;
  readonly recordsReferenced: number;
  readonly live: number;
  readonly records: Uint32Array;
  readonly versionIds: readonly number[];
  readonly born: readonly number[];
  /** Empty: all alive. */
  readonly died: readonly number[];
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

function numbersBelow(count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let number = 0; number < count; number += 1) numbers[number] = number;
  return numbers;
}

function numbersOf(json: string | undefined): readonly number[] {
  return JSON.parse(json ?? '[]') as readonly number[];
}

export type ReadOperations = ReturnType<typeof readOperations>;
