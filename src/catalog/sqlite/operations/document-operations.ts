/** Writes on documents: the transactions an upsert and a delete are. */
import type { CommitDeleteResult, CommitDeleteVersionsResult } from '../../contract.ts';
import type {
  CommitUpsertInput,
  CommitUpsertResult,
  DeadVersion,
  UsageEvent,
} from '../../../document-commits.ts';
import { assertInvariant } from '../../../errors.ts';
import type { Connection } from '../connection.ts';
import { addUsageSql, usageParameters } from '../rows.ts';
import { indexKeyById } from './statements.ts';

interface OwnedIndex {
  readonly index_key: number;
  readonly generation: number;
  readonly tenant_documents: number;
}

interface LiveVersion {
  readonly version_id: number;
  readonly segment_id: number;
  readonly record: number;
}

export interface CommitDeleteInput {
  readonly tenantId: string;
  readonly indexId: string;
  readonly docId: string;
  readonly usage: UsageEvent;
}

export interface CommitDeleteVersionsInput extends Omit<CommitDeleteInput, 'docId'> {
  readonly versionIds: readonly number[];
}

export function documentOperations(connection: Connection) {
  const selectIndex = connection.prepare<[string, string], OwnedIndex>(
    `SELECT indexes.index_key, indexes.generation, tenants.documents_stored AS tenant_documents
     FROM indexes JOIN tenants ON tenants.id = indexes.tenant_id
     WHERE indexes.id = ? AND indexes.tenant_id = ?`,
  );
  const selectLive = connection.prepare<[number, string], LiveVersion>(
    `SELECT version_id, segment_id, record FROM versions INDEXED BY versions_live
     WHERE index_key = ? AND doc_id = ? AND died = 0`,
  );
  const selectAlive = connection.prepare<[number, number], DeadVersion>(
    `SELECT version_id AS versionId, doc_id AS docId, segment_id AS segmentId, record FROM versions
     WHERE version_id = ? AND index_key = ? AND died = 0`,
  );
  const kill = connection.prepare('UPDATE versions SET died = ? WHERE version_id = ?');
  const insertVersion = connection.prepare(
    `INSERT INTO versions (version_id, index_key, segment_id, record, born, chunk_count, token_vectors,
       doc_id, metadata)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const selectSegment = connection.prepare<
    [number, number],
    { readonly id: number; readonly records_sealed: number | null }
  >('SELECT id, records_sealed FROM segments WHERE id = ? AND index_key = ?');
  const advance = connection.prepare(
    'UPDATE indexes SET generation = ?, documents_stored = documents_stored + ? WHERE index_key = ?',
  );
  const addStored = connection.prepare(
    'UPDATE tenants SET documents_stored = documents_stored + ? WHERE id = ?',
  );
  const addUsage = connection.prepare(addUsageSql);
  const selectIndexKey = indexKeyById(connection);
  const forget = connection.prepare(
    `DELETE FROM versions WHERE version_id IN (
       SELECT version_id FROM versions INDEXED BY versions_dead
       WHERE index_key = ? AND died > 0 AND died <= ? LIMIT ?)`,
  );

  const bury = (indexKey: number, docId: string, generation: number): DeadVersion | undefined => {
    const live = selectLive.get(indexKey, docId);
    if (live === undefined) return undefined;
    kill.run(generation, live.version_id);
    return { docId, versionId: live.version_id, segmentId: live.segment_id, record: live.record };
  };
  const advanceTo = (index: OwnedIndex, generation: number, added: number, usage: UsageEvent): void => {
    advance.run(generation, added, index.index_key);
    if (added !== 0) addStored.run(added, usage.tenantId);
    addUsage.run(...usageParameters(usage));
  };

  return {
    commitUpsert(input: CommitUpsertInput): CommitUpsertResult {
      const { documents, tenantId, usage } = input;
      assertInvariant(documents.length > 0, 'an upsert commits at least one document');
      assertInvariant(usage.tenantId === tenantId, 'usage is charged to the tenant that writes');
      const index = selectIndex.get(input.indexId, tenantId);
      if (index === undefined) return { outcome: 'index_missing' };
      const generation = index.generation + 1;

      let replaced = 0;
      for (const { docId, replaces } of documents) {
        const live = selectLive.get(index.index_key, docId);
        if (replaces !== undefined && live?.version_id !== replaces) return { outcome: 'document_changed' };
        if (live !== undefined) replaced++;
      }
      const added = documents.length - replaced;
      // Replacing never needs room, even for a tenant whose allowance was lowered below what it stores.
      if (added > 0 && index.tenant_documents + added > input.documentsMax) {
        return { outcome: 'document_allowance_exceeded', documents: index.tenant_documents };
      }

      const died: DeadVersion[] = [];
      const segments = new Map<number, number>();
      for (const document of documents) {
        let recordsMax = segments.get(document.segmentId);
        if (recordsMax === undefined) {
          const segment = selectSegment.get(document.segmentId, index.index_key);
          assertInvariant(segment !== undefined, `segment ${document.segmentId} is not one of this index`);
          recordsMax = segment.records_sealed ?? Number.POSITIVE_INFINITY;
          segments.set(document.segmentId, recordsMax);
        }
        assertInvariant(document.record < recordsMax, `record ${document.record} lies beyond its segment`);
        const dead = bury(index.index_key, document.docId, generation);
        if (dead !== undefined) died.push(dead);
        insertVersion.run(
          document.versionId,
          index.index_key,
          document.segmentId,
          document.record,
          generation,
          document.chunkCount,
          document.tokenVectors,
          document.docId,
          document.metadata,
        );
      }
      assertInvariant(died.length === replaced, 'doc ids of one upsert are unique');
      advanceTo(index, generation, added, usage);
      return { outcome: 'committed', generation, died };
    },

    commitDelete(input: CommitDeleteInput): CommitDeleteResult {
      assertInvariant(input.usage.tenantId === input.tenantId, 'usage is charged to the tenant that writes');
      const index = selectIndex.get(input.indexId, input.tenantId);
      if (index === undefined) return { outcome: 'index_missing' };
      const generation = index.generation + 1;
      const died = bury(index.index_key, input.docId, generation);
      if (died === undefined) return { outcome: 'absent' };
      advanceTo(index, generation, -1, input.usage);
      return { outcome: 'committed', generation, died };
    },

    commitDeleteVersions(input: CommitDeleteVersionsInput): CommitDeleteVersionsResult {
      assertInvariant(input.usage.tenantId === input.tenantId, 'usage is charged to the tenant that writes');
      const index = selectIndex.get(input.indexId, input.tenantId);
      if (index === undefined) return { outcome: 'index_missing' };
      const generation = index.generation + 1;
      const died: DeadVersion[] = [];
      for (const versionId of input.versionIds) {
        const alive = selectAlive.get(versionId, index.index_key);
        if (alive === undefined) continue;
        kill.run(generation, versionId);
        died.push(alive);
      }
      if (died.length === 0) return { outcome: 'absent' };
      advanceTo(index, generation, -died.length, input.usage);
      return { outcome: 'committed', generation, died };
    },

    /** One bounded batch of `Catalog.forgetDeadVersions`; fewer than `limit` means done. */
    forgetDeadVersions(input: {
      readonly indexId: string;
      readonly generation: number;
      readonly limit: number;
    }): number {
      const indexKey = selectIndexKey.get(input.indexId);
      if (indexKey === undefined) return 0;
      return forget.run(indexKey, input.generation, input.limit).changes;
    },
  };
}
