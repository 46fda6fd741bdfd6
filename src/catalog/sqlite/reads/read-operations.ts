/**
 * Reads of the `versions` table. They may have to wait for the disk, so reader threads run them. (Tenants, keys and indexes
 * are small and read often: `small-reads.ts`.) The first parameter of each is the id of the index.
 */
import type { DocumentVersion } from '../../../contracts/document-commits.ts';
import type {
  DocumentCount,
  DocumentOrder,
  DocumentPage,
  DocumentPageQuery,
  ExpiredIndex,
  StoredDocument,
} from '../../contract.ts';
import { withExpiry } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { indexKeyById } from '../operations/statements.ts';
import { stateReader } from './placed-versions.ts';

const isStoredSql =
  'SELECT 1 FROM versions INDEXED BY versions_live WHERE index_key = ? AND doc_id = ? AND died = 0';
const expired =
  'FROM versions INDEXED BY versions_expiring WHERE died = 0 AND expires_at_ms <= @nowMs AND index_key =';
const countDocumentsSql = `SELECT documents_stored - gone.documents AS documents, chunks_stored - gone.chunks AS chunks
  FROM indexes, (SELECT count(*) AS documents, coalesce(sum(chunk_count), 0) AS chunks
    ${expired} (SELECT index_key FROM indexes WHERE id = @indexId)) AS gone
  WHERE id = @indexId`;
const expiredIndexesSql = `SELECT id, tenant_id AS tenantId FROM indexes
  WHERE EXISTS (SELECT 1 ${expired} indexes.index_key)`;
const expiredVersionsSql = `SELECT version_id
  ${expired} (SELECT index_key FROM indexes WHERE id = @indexId) ORDER BY expires_at_ms LIMIT @limit`;

type Expiring<Version extends { readonly expiresAtMs?: number }> = Omit<Version, 'expiresAtMs'> & {
  readonly expiresAtMs: number | null;
};

/** Commands also read catalogs of earlier releases. Nothing expires there. */
function expiryOf(connection: Connection): string {
  const columns = connection.pragma('table_info(versions)') as readonly { readonly name: string }[];
  return columns.some(({ name }) => name === 'expires_at_ms') ? 'expires_at_ms' : 'NULL';
}

function firstVersions(connection: Connection, expiresAtMs: string) {
  const select = connection.prepare<[object], number>(
    `SELECT version_id FROM json_each(@wanted) AS wanted CROSS JOIN versions ON version_id = wanted.value
     WHERE index_key = @indexKey AND doc_id > @after AND (${expiresAtMs} IS NULL OR ${expiresAtMs} > @nowMs)
     ORDER BY doc_id LIMIT @limit`,
  );
  return (indexKey: number, versionIds: readonly number[], { after = '', limit, nowMs }: DocumentOrder) =>
    select.pluck().all({ wanted: JSON.stringify(versionIds), indexKey, after, limit, nowMs });
}

export function readOperations(connection: Connection) {
  const selectIndexKey = indexKeyById(connection);
  const isStored = connection.prepare<[number, string], number>(isStoredSql).pluck();
  const expiresAtMs = expiryOf(connection);
  const selectVersion = connection.prepare<[number, number], Expiring<StoredDocument>>(
    `SELECT doc_id AS docId, metadata, chunk_count AS chunkCount, ${expiresAtMs} AS expiresAtMs
     FROM versions WHERE version_id = ? AND index_key = ?`,
  );
  const selectFirst = firstVersions(connection, expiresAtMs);
  const selectDocuments = connection.prepare<[number, string, number], Expiring<StoredDocument>>(
    `SELECT doc_id AS docId, metadata, chunk_count AS chunkCount, ${expiresAtMs} AS expiresAtMs
     FROM versions INDEXED BY versions_live WHERE index_key = ? AND died = 0 AND doc_id > ?
       AND (${expiresAtMs} IS NULL OR ${expiresAtMs} > ?) ORDER BY doc_id`,
  );
  const selectDocument = connection.prepare<[number, string], Expiring<DocumentVersion>>(
    `SELECT doc_id AS docId, version_id AS versionId, metadata, chunk_count AS chunkCount,
       token_vectors AS tokenVectors, segment_id AS segmentId, record, ${expiresAtMs} AS expiresAtMs
     FROM versions INDEXED BY versions_live WHERE index_key = ? AND doc_id = ? AND died = 0`,
  );

  return {
    loadIndexState: stateReader(connection),

    countStored(indexId: string, docIds: readonly string[]): number {
      const indexKey = selectIndexKey.get(indexId);
      if (indexKey === undefined) return 0;
      return docIds.filter((docId) => isStored.get(indexKey, docId) !== undefined).length;
    },

    resolveVersions(indexId: string, versionIds: readonly number[]): ReadonlyMap<number, StoredDocument> {
      const indexKey = selectIndexKey.get(indexId);
      const found = new Map<number, StoredDocument>();
      if (indexKey === undefined) return found;
      for (const versionId of versionIds) {
        const version = selectVersion.get(versionId, indexKey);
        if (version !== undefined) found.set(versionId, withExpiry(version));
      }
      return found;
    },

    firstVersions(indexId: string, versionIds: readonly number[], order: DocumentOrder): readonly number[] {
      const indexKey = selectIndexKey.get(indexId);
      return indexKey === undefined ? [] : selectFirst(indexKey, versionIds, order);
    },

    listDocuments(
      indexId: string,
      { after = '', limit, nowMs, bytesMax }: DocumentPageQuery,
    ): DocumentPage | undefined {
      const indexKey = selectIndexKey.get(indexId);
      if (indexKey === undefined) return undefined;
      const documents: StoredDocument[] = [];
      let bytes = 0;
      // The iterator reads no row beyond the first that the page does not hold.
      for (const document of selectDocuments.iterate(indexKey, after, nowMs)) {
        if (documents.length === limit || bytes >= bytesMax) return { documents, hasMore: true };
        documents.push(withExpiry(document));
        bytes += Buffer.byteLength(document.metadata);
      }
      return { documents, hasMore: false };
    },

    findDocument(indexId: string, docId: string): DocumentVersion | undefined {
      const indexKey = selectIndexKey.get(indexId);
      const found = indexKey === undefined ? undefined : selectDocument.get(indexKey, docId);
      return found && withExpiry(found);
    },

    // These prepare their statements at the call: commands also read catalogs of earlier releases, which lack their columns.
    countDocuments: (indexId: string, nowMs: number): DocumentCount | undefined =>
      connection.prepare<[object], DocumentCount>(countDocumentsSql).get({ indexId, nowMs }),

    expiredIndexes: (nowMs: number): readonly ExpiredIndex[] =>
      connection.prepare<[object], ExpiredIndex>(expiredIndexesSql).all({ nowMs }),

    expiredVersions: (indexId: string, nowMs: number, limit: number): readonly number[] =>
      connection.prepare<[object], number>(expiredVersionsSql).pluck().all({ indexId, nowMs, limit }),
  };
}

export type ReadOperations = ReturnType<typeof readOperations>;
