/** Writes on indexes. */
import type {
  CreateIndexInput,
  CreateIndexResult,
  IndexChange,
  IndexRow,
  IndexStatus,
  UpdateIndexResult,
} from '../../contract.ts';
import { matchFieldsDetail } from '../../audit-detail.ts';
import { ServiceError } from '../../../errors.ts';
import { indexColumns, toIndexRow, type IndexColumns } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { auditLog } from './audit-log.ts';

/** Stands for a name while two indexes swap theirs. No index has an empty name. */
const nobodysName = '';

const insertIndexSql = `INSERT INTO indexes (id, tenant_id, name, model, model_version, max_tokens, overlap_tokens,
    minimum_chunk_tokens, metadata_schema, match_fields, status, created_at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready', ?)`;

const indexOfNameSql = `SELECT ${indexColumns} FROM indexes WHERE tenant_id = ? AND name = ?`;
const selectIndexSql = `SELECT ${indexColumns}, index_key, documents_stored FROM indexes WHERE id = ? AND tenant_id = ?`;
const updateNameSql = 'UPDATE indexes SET name = ? WHERE id = ?';

type OwnIndex = IndexColumns & { readonly index_key: number; readonly documents_stored: number };

export function indexOperations(connection: Connection) {
  const tenantExists = connection.prepare<[string], number>('SELECT 1 FROM tenants WHERE id = ?').pluck();
  const indexOfName = connection.prepare<[string, string], IndexColumns>(indexOfNameSql);
  const countIndexes = connection
    .prepare<[string], number>('SELECT count(*) FROM indexes WHERE tenant_id = ?')
    .pluck();
  const insertIndex = connection.prepare(insertIndexSql);
  const selectIndex = connection.prepare<[string, string], OwnIndex>(selectIndexSql);
  const note = auditLog(connection);
  const updateName = connection.prepare(updateNameSql);
  const updateStatus = connection.prepare('UPDATE indexes SET status = ? WHERE id = ?');
  const schedulePurge = connection.prepare('INSERT INTO purges (index_key) VALUES (?)');
  const deleteIndexRow = connection.prepare('DELETE FROM indexes WHERE index_key = ?');
  const subtractStored = connection.prepare(
    'UPDATE tenants SET documents_stored = documents_stored - ? WHERE id = ?',
  );

  return {
    updateIndex: updateOperation(connection),

    createIndex(actor: string, index: CreateIndexInput, indexesMax: number): CreateIndexResult {
      const { id, tenantId, name, model, modelVersion, metadataSchema, matchFields } = index;
      if (tenantExists.get(tenantId) === undefined) {
        throw new ServiceError('authentication_failed', 'the tenant no longer exists');
      }
      const named = indexOfName.get(tenantId, name);
      if (named !== undefined) return { outcome: 'duplicate_name', index: toIndexRow(named) };
      if ((countIndexes.get(tenantId) ?? 0) >= indexesMax) return { outcome: 'too_many_indexes' };
      const { maxTokens, overlapTokens, minimumChunkTokens } = index.chunking;
      const chunking = [maxTokens, overlapTokens, minimumChunkTokens];
      const createdAtMs = Date.now();
      const fields = JSON.stringify(matchFields);
      const own = [model, modelVersion, ...chunking, metadataSchema, fields];
      insertIndex.run(id, tenantId, name, ...own, createdAtMs);
      if (matchFields.length > 0) note(actor, 'match_fields_changed', tenantId, matchFieldsDetail(index));
      return { outcome: 'created', index: { ...index, status: 'ready', createdAtMs } };
    },

    setIndexStatus(indexId: string, status: IndexStatus): void {
      updateStatus.run(status, indexId);
    },

    swapIndexNames(tenantId: string, indexId: string, otherId: string): IndexRow | undefined {
      const index = selectIndex.get(indexId, tenantId);
      const other = selectIndex.get(otherId, tenantId);
      if (index === undefined || other === undefined) return undefined;
      updateName.run(nobodysName, index.id);
      updateName.run(index.name, other.id);
      updateName.run(other.name, index.id);
      return toIndexRow({ ...index, name: other.name });
    },

    deleteIndex(tenantId: string, indexId: string): boolean {
      const index = selectIndex.get(indexId, tenantId);
      if (index === undefined) return false;
      schedulePurge.run(index.index_key);
      deleteIndexRow.run(index.index_key);
      subtractStored.run(index.documents_stored, tenantId);
      return true;
    },
  };
}

function updateOperation(connection: Connection) {
  const selectIndex = connection.prepare<[string, string], IndexColumns>(selectIndexSql);
  const indexOfName = connection.prepare<[string, string], IndexColumns>(indexOfNameSql);
  const updateName = connection.prepare(updateNameSql);
  const updateMatchFields = connection.prepare('UPDATE indexes SET match_fields = ? WHERE id = ?');
  const note = auditLog(connection);
  return (
    actor: string,
    tenantId: string,
    indexId: string,
    { name, matchFields }: IndexChange,
  ): UpdateIndexResult => {
    const index = selectIndex.get(indexId, tenantId);
    if (index === undefined) return { outcome: 'index_missing' };
    const before = toIndexRow(index);
    const updated = {
      ...before,
      name: name ?? before.name,
      matchFields: matchFields ?? before.matchFields,
    };
    if (before.name !== updated.name) {
      if (indexOfName.get(tenantId, updated.name) !== undefined) return { outcome: 'duplicate_name' };
      updateName.run(updated.name, indexId);
    }
    const fields = JSON.stringify(updated.matchFields);
    if (JSON.stringify(before.matchFields) !== fields) {
      updateMatchFields.run(fields, indexId);
      note(actor, 'match_fields_changed', tenantId, matchFieldsDetail(updated));
    }
    return { outcome: 'updated', index: updated };
  };
}
