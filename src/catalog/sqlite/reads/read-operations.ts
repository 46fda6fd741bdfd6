/**
 * Reads of the `versions` table. They may have to wait for the disk, so reader threads run them. (Tenants, keys and indexes
 * are small and read often: `small-reads.ts`.) The first parameter of each is the id of the index.
 */
import type { DocumentVersion } from '../../../document-commits.ts';
import type { DocumentCount, DocumentPage, Page, ResolvedVersion, StoredDocument } from '../../contract.ts';
import type { Connection } from '../connection.ts';
import { indexKeyById } from '../operations/statements.ts';
import { stateReader } from './placed-versions.ts';

const selectVersionSql =
  'SELECT doc_id AS docId, metadata FROM versions WHERE version_id = ? AND index_key = ?';
const isStoredSql =
  'SELECT 1 FROM versions INDEXED BY versions_live WHERE index_key = ? AND doc_id = ? AND died = 0';
const selectDocumentsSql = `SELECT doc_id AS docId, metadata, chunk_count AS chunkCount
  FROM versions INDEXED BY versions_live WHERE index_key = ? AND died = 0 AND doc_id > ? ORDER BY doc_id`;
const selectDocumentSql = `SELECT doc_id AS docId, version_id AS versionId, metadata, chunk_count AS chunkCount,
    token_vectors AS tokenVectors, segment_id AS segmentId, record
  FROM versions INDEXED BY versions_live WHERE index_key = ? AND doc_id = ? AND died = 0`;
const countDocumentsSql =
  'SELECT documents_stored AS documents, chunks_stored AS chunks FROM indexes WHERE id = ?';

export function readOperations(connection: Connection) {
  const selectIndexKey = indexKeyById(connection);
  const isStored = connection.prepare<[number, string], number>(isStoredSql).pluck();
  const selectVersion = connection.prepare<[number, number], ResolvedVersion>(selectVersionSql);
  const selectDocuments = connection.prepare<[number, string], StoredDocument>(selectDocumentsSql);
  const selectDocument = connection.prepare<[number, string], DocumentVersion>(selectDocumentSql);

  return {
    loadIndexState: stateReader(connection),

    countStored(indexId: string, docIds: readonly string[]): number {
      const indexKey = selectIndexKey.get(indexId);
      if (indexKey === undefined) return 0;
      return docIds.filter((docId) => isStored.get(indexKey, docId) !== undefined).length;
    },

    resolveVersions(indexId: string, versionIds: readonly number[]): ReadonlyMap<number, ResolvedVersion> {
      const indexKey = selectIndexKey.get(indexId);
      const found = new Map<number, ResolvedVersion>();
      if (indexKey === undefined) return found;
      for (const versionId of versionIds) {
        const version = selectVersion.get(versionId, indexKey);
        if (version !== undefined) found.set(versionId, version);
      }
      return found;
    },

    listDocuments(
      indexId: string,
      { after = '', limit, bytesMax }: Page<string> & { readonly bytesMax: number },
    ): DocumentPage | undefined {
      const indexKey = selectIndexKey.get(indexId);
      if (indexKey === undefined) return undefined;
      const documents: StoredDocument[] = [];
      let bytes = 0;
      // The iterator reads no row beyond the first that the page does not hold.
      for (const document of selectDocuments.iterate(indexKey, after)) {
        if (documents.length === limit || bytes >= bytesMax) return { documents, hasMore: true };
        documents.push(document);
        bytes += Buffer.byteLength(document.metadata);
      }
      return { documents, hasMore: false };
    },

    findDocument(indexId: string, docId: string): DocumentVersion | undefined {
      const indexKey = selectIndexKey.get(indexId);
      return indexKey === undefined ? undefined : selectDocument.get(indexKey, docId);
    },

    /** Prepares its statement at the call: commands also read catalogs of earlier releases, which lack this column. */
    countDocuments: (indexId: string): DocumentCount | undefined =>
      connection.prepare<[string], DocumentCount>(countDocumentsSql).get(indexId),
  };
}

export type ReadOperations = ReturnType<typeof readOperations>;
