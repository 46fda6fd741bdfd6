/** Writes on indexes and segments. Every function runs inside the writer's transaction. */
import type {
  CreateIndexInput,
  IndexRow,
  IndexStatus,
  RenameIndexResult,
  SwapSegmentsInput,
} from '../../contract.ts';
import { ServiceError, assertInvariant } from '../../../errors.ts';
import type { Connection } from '../connection.ts';
import { indexColumns, toIndexRow, type IndexColumns } from '../rows.ts';
import { indexKeyById } from './statements.ts';

export type CreateIndexResult =
  | { readonly outcome: 'created'; readonly index: IndexRow }
  | { readonly outcome: 'duplicate_name' }
  | { readonly outcome: 'too_many_indexes' };

/** While two names change places: an index's own is never empty. */
const nobodysName = '';

/** `segment_id` of a dead version whose record a merge dropped. Ids start at 1. */
const noSegment = 0;

export function indexOperations(connection: Connection) {
  const tenantExists = connection.prepare<[string], number>('SELECT 1 FROM tenants WHERE id = ?').pluck();
  const nameTaken = connection
    .prepare<[string, string], number>('SELECT 1 FROM indexes WHERE tenant_id = ? AND name = ?')
    .pluck();
  const countIndexes = connection
    .prepare<[string], number>('SELECT count(*) FROM indexes WHERE tenant_id = ?')
    .pluck();
  const insertIndex = connection.prepare(
    `INSERT INTO indexes (id, tenant_id, name, model, model_version, max_tokens, overlap_tokens,
       minimum_chunk_tokens, metadata_schema, status, created_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready', ?)`,
  );
  const selectRow = connection.prepare<[string, string], IndexColumns>(
    `SELECT ${indexColumns} FROM indexes WHERE id = ? AND tenant_id = ?`,
  );
  const updateName = connection.prepare('UPDATE indexes SET name = ? WHERE id = ?');
  const updateStatus = connection.prepare('UPDATE indexes SET status = ? WHERE id = ?');
  const selectOwned = connection.prepare<
    [string, string],
    { readonly index_key: number; readonly documents_stored: number }
  >('SELECT index_key, documents_stored FROM indexes WHERE id = ? AND tenant_id = ?');
  const schedulePurge = connection.prepare('INSERT INTO purges (index_key) VALUES (?)');
  const deleteIndexRow = connection.prepare('DELETE FROM indexes WHERE index_key = ?');
  const subtractStored = connection.prepare(
    'UPDATE tenants SET documents_stored = documents_stored - ? WHERE id = ?',
  );
  const selectKey = indexKeyById(connection);
  const insertSegment = connection.prepare(
    "INSERT INTO segments (id, index_key, blob, state) VALUES (?, ?, ?, 'active')",
  );
  const seal = connection.prepare(
    "UPDATE segments SET state = 'sealed', records_sealed = ? WHERE id = ? AND state = 'active'",
  );
  const segmentOfIndex = connection
    .prepare<[number, number], number>('SELECT 1 FROM segments WHERE id = ? AND index_key = ?')
    .pluck();
  const move = connection.prepare(
    'UPDATE versions SET segment_id = ?, record = ? WHERE version_id = ? AND index_key = ?',
  );
  const liveLeftBehind = connection
    .prepare<[number, number], number>(
      'SELECT count(*) FROM versions WHERE index_key = ? AND segment_id = ? AND died = 0',
    )
    .pluck();
  const detachDead = connection.prepare(
    `UPDATE versions SET segment_id = ${noSegment}, record = 0 WHERE index_key = ? AND segment_id = ?`,
  );
  const deleteSegment = connection.prepare('DELETE FROM segments WHERE id = ? AND index_key = ?');

  const indexKeyOf = (indexId: string): number => {
    const indexKey = selectKey.get(indexId);
    if (indexKey === undefined) throw new ServiceError('not_found', 'the index does not exist');
    return indexKey;
  };

  return {
    createIndex(input: { readonly index: CreateIndexInput; readonly indexesMax: number }): CreateIndexResult {
      const { index } = input;
      if (tenantExists.get(index.tenantId) === undefined) {
        throw new ServiceError('authentication_failed', 'the tenant no longer exists');
      }
      if (nameTaken.get(index.tenantId, index.name) !== undefined) return { outcome: 'duplicate_name' };
      if ((countIndexes.get(index.tenantId) ?? 0) >= input.indexesMax) return { outcome: 'too_many_indexes' };
      const createdAtMs = Date.now();
      insertIndex.run(
        index.id,
        index.tenantId,
        index.name,
        index.model,
        index.modelVersion,
        index.chunking.maxTokens,
        index.chunking.overlapTokens,
        index.chunking.minimumChunkTokens,
        index.metadataSchema,
        createdAtMs,
      );
      return { outcome: 'created', index: { ...index, status: 'ready', createdAtMs } };
    },

    setIndexStatus(input: { readonly indexId: string; readonly status: IndexStatus }): void {
      updateStatus.run(input.status, input.indexId);
    },

    renameIndex(input: {
      readonly tenantId: string;
      readonly indexId: string;
      readonly name: string;
    }): RenameIndexResult {
      const { tenantId, indexId, name } = input;
      const index = selectRow.get(indexId, tenantId);
      if (index === undefined) return { outcome: 'index_missing' };
      if (index.name !== name && nameTaken.get(tenantId, name) !== undefined)
        return { outcome: 'duplicate_name' };
      updateName.run(name, indexId);
      return { outcome: 'renamed', index: toIndexRow({ ...index, name }) };
    },

    swapIndexNames(input: {
      readonly tenantId: string;
      readonly indexId: string;
      readonly otherId: string;
    }): IndexRow | undefined {
      const index = selectRow.get(input.indexId, input.tenantId);
      const other = selectRow.get(input.otherId, input.tenantId);
      if (index === undefined || other === undefined) return undefined;
      updateName.run(nobodysName, index.id);
      updateName.run(index.name, other.id);
      updateName.run(other.name, index.id);
      return toIndexRow({ ...index, name: other.name });
    },

    deleteIndex(input: { readonly tenantId: string; readonly indexId: string }): boolean {
      const index = selectOwned.get(input.indexId, input.tenantId);
      if (index === undefined) return false;
      schedulePurge.run(index.index_key);
      deleteIndexRow.run(index.index_key);
      subtractStored.run(index.documents_stored, input.tenantId);
      return true;
    },

    createSegment(input: { readonly id: number; readonly indexId: string; readonly blob: string }): void {
      insertSegment.run(input.id, indexKeyOf(input.indexId), input.blob);
    },

    sealSegment(input: { readonly segmentId: number; readonly records: number }): void {
      if (seal.run(input.records, input.segmentId).changes === 0) {
        throw new ServiceError('not_found', 'there is no such active segment');
      }
    },

    swapSegments(input: SwapSegmentsInput): void {
      const indexKey = indexKeyOf(input.indexId);
      const removed = new Set(input.removedSegmentIds);
      const targets = new Set(input.moves.map((item) => item.to.segmentId));
      for (const segmentId of targets) {
        assertInvariant(
          !removed.has(segmentId) && segmentOfIndex.get(segmentId, indexKey) !== undefined,
          `records move to segment ${segmentId}, which the index does not keep`,
        );
      }
      // A version that was forgotten meanwhile is no longer there to move.
      for (const { versionId, to } of input.moves) move.run(to.segmentId, to.record, versionId, indexKey);
      for (const segmentId of removed) {
        assertInvariant(
          liveLeftBehind.get(indexKey, segmentId) === 0,
          `segment ${segmentId} still holds live versions`,
        );
        detachDead.run(indexKey, segmentId);
        assertInvariant(
          deleteSegment.run(segmentId, indexKey).changes === 1,
          `segment ${segmentId} is not one of this index`,
        );
      }
    },
  };
}
