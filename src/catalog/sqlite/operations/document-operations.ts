/** Writes on documents: the transactions of an upsert and of a deletion. */
import type {
  CommitDeleteInput,
  CommitDeleteResult,
  CommitDeleteVersionsInput,
  CommitDeleteVersionsResult,
} from '../../contract.ts';
import type {
  CommitUpsertInput,
  CommitUpsertResult,
  DeadVersion,
  NewVersion,
  UsageEvent,
} from '../../../contracts/document-commits.ts';
import { assertInvariant } from '../../../errors.ts';
import { usageValues } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { addUsageSql } from '../usage/usage-statements.ts';
import { indexKeyById } from './statements.ts';

interface OwnedIndex {
  readonly index_key: number;
  readonly generation: number;
  readonly tenant_documents: number;
}

const selectIndexSql = `SELECT indexes.index_key, indexes.generation, tenants.documents_stored AS tenant_documents
  FROM indexes JOIN tenants ON tenants.id = indexes.tenant_id
  WHERE indexes.id = ? AND indexes.tenant_id = ?`;

const deadColumns = 'version_id AS versionId, doc_id AS docId, segment_id AS segmentId, record';
const selectLiveSql = `SELECT ${deadColumns} FROM versions INDEXED BY versions_live
  WHERE index_key = ? AND doc_id = ? AND died = 0`;
const selectAliveSql = `SELECT ${deadColumns} FROM versions WHERE index_key = ? AND version_id = ? AND died = 0`;

const insertVersionSql = `INSERT INTO versions (version_id, index_key, segment_id, record, born, chunk_count,
    token_vectors, doc_id, metadata, expires_at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const selectSegmentSql = 'SELECT records_sealed FROM segments WHERE id = ? AND index_key = ?';

const advanceSql =
  'UPDATE indexes SET generation = ?, documents_stored = documents_stored + ? WHERE index_key = ?';

const forgetSql = `DELETE FROM versions WHERE version_id IN (
  SELECT version_id FROM versions INDEXED BY versions_dead
  WHERE index_key = ? AND died > 0 AND died <= ? LIMIT ?)`;

function prepare(connection: Connection) {
  return {
    selectIndex: connection.prepare<[string, string], OwnedIndex>(selectIndexSql),
    /** The live version of a document. */
    selectLive: connection.prepare<[number, string], DeadVersion>(selectLiveSql),
    /** A version, if it is alive. */
    selectAlive: connection.prepare<[number, number], DeadVersion>(selectAliveSql),
    kill: connection.prepare('UPDATE versions SET died = ? WHERE version_id = ?'),
    insertVersion: connection.prepare(insertVersionSql),
    selectSegment: connection.prepare<[number, number], { readonly records_sealed: number | null }>(
      selectSegmentSql,
    ),
    advance: connection.prepare(advanceSql),
    addStored: connection.prepare('UPDATE tenants SET documents_stored = documents_stored + ? WHERE id = ?'),
    addUsage: connection.prepare(addUsageSql),
    selectIndexKey: indexKeyById(connection),
    forget: connection.prepare(forgetSql),
  };
}
type Statements = ReturnType<typeof prepare>;

export function documentOperations(connection: Connection) {
  const statements = prepare(connection);
  return {
    commitUpsert: (input: CommitUpsertInput): CommitUpsertResult => commitUpsert(statements, input),

    commitDelete({ docId, ...input }: CommitDeleteInput): CommitDeleteResult {
      const find = (indexKey: number) => [statements.selectLive.get(indexKey, docId)];
      const deleted = commitDeletion(statements, input, find);
      return deleted.outcome === 'committed' ? { ...deleted, died: deleted.died[0]! } : deleted;
    },

    commitDeleteVersions: ({ versionIds, ...input }: CommitDeleteVersionsInput): CommitDeleteVersionsResult =>
      commitDeletion(statements, input, (indexKey) =>
        [...new Set(versionIds)].map((versionId) => statements.selectAlive.get(indexKey, versionId)),
      ),

    /** Deletes at most `limit` rows and returns how many. Fewer than `limit` means that none are left. */
    forgetDeadVersions(indexId: string, generation: number, limit: number): number {
      const indexKey = statements.selectIndexKey.get(indexId);
      return indexKey === undefined ? 0 : statements.forget.run(indexKey, generation, limit).changes;
    },
  };
}

function commitUpsert(statements: Statements, input: CommitUpsertInput): CommitUpsertResult {
  const { documents, tenantId, usage } = input;
  const index = statements.selectIndex.get(input.indexId, tenantId);
  if (index === undefined) return { outcome: 'index_missing' };
  const generation = index.generation + 1;

  const died: DeadVersion[] = [];
  for (const { docId, replaces } of documents) {
    const live = statements.selectLive.get(index.index_key, docId);
    if (replaces !== undefined && live?.versionId !== replaces) return { outcome: 'document_changed' };
    if (live !== undefined) died.push(live);
  }
  const added = documents.length - died.length;
  // Replacing a document never needs room, even when the allowance was lowered below the number of stored documents.
  if (added > 0 && index.tenant_documents + added > input.documentsMax) {
    return { outcome: 'document_allowance_exceeded', documents: index.tenant_documents };
  }
  assertPlaced(statements, index.index_key, documents);
  for (const { versionId } of died) statements.kill.run(generation, versionId);
  for (const document of documents) {
    statements.insertVersion.run(
      document.versionId,
      index.index_key,
      document.segmentId,
      document.record,
      generation,
      document.chunkCount,
      document.tokenVectors,
      document.docId,
      document.metadata,
      document.expiresAtMs ?? null,
    );
  }
  advanceTo(statements, index, generation, added, usage);
  return { outcome: 'committed', generation, died };
}

/** Asserts that each document lies in a segment of the index, and not beyond its end. */
function assertPlaced(statements: Statements, indexKey: number, documents: readonly NewVersion[]): void {
  const segments = new Map<number, number>();
  for (const { segmentId, record } of documents) {
    let recordsMax = segments.get(segmentId);
    if (recordsMax === undefined) {
      const segment = statements.selectSegment.get(segmentId, indexKey);
      assertInvariant(segment !== undefined, `segment ${segmentId} is not one of this index`);
      recordsMax = segment.records_sealed ?? Number.POSITIVE_INFINITY;
      segments.set(segmentId, recordsMax);
    }
    assertInvariant(record < recordsMax, `record ${record} lies beyond its segment`);
  }
}

/** Ends the live versions that `find` returns for the key of the index. */
function commitDeletion(
  statements: Statements,
  { tenantId, indexId, usage }: Omit<CommitDeleteInput, 'docId'>,
  find: (indexKey: number) => readonly (DeadVersion | undefined)[],
): CommitDeleteVersionsResult {
  const index = statements.selectIndex.get(indexId, tenantId);
  if (index === undefined) return { outcome: 'index_missing' };
  const generation = index.generation + 1;
  const died = find(index.index_key).filter((version) => version !== undefined);
  if (died.length === 0) return { outcome: 'absent' };
  for (const { versionId } of died) statements.kill.run(generation, versionId);
  advanceTo(statements, index, generation, -died.length, usage);
  return { outcome: 'committed', generation, died };
}

/** `added`: how many more documents the index stores. */
function advanceTo(
  statements: Statements,
  index: OwnedIndex,
  generation: number,
  added: number,
  usage: UsageEvent,
): void {
  statements.advance.run(generation, added, index.index_key);
  if (added !== 0) statements.addStored.run(added, usage.tenantId);
  statements.addUsage.run(usage.tenantId, ...usageValues(usage));
}
