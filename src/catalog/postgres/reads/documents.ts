/** Reads of single documents and of pages of them. `segments.ts` reads whole indexes. */
import type { Catalog, DocumentCount, ExpiredIndex, StoredDocument } from '../../contract.ts';
import type { DocumentVersion } from '../../../contracts/document-commits.ts';
import { type Database, statements } from '../database.ts';
import { placeNow } from '../functions.ts';
import { withExpiry } from '../../rows.ts';

interface DocumentRow {
  /** Null when the page is empty. */
  readonly doc_id: Buffer | null;
  readonly metadata: string;
  readonly chunk_count: number;
  readonly expiresAtMs: number | null;
  /** Documents that the page may hold, and one more if there is one. */
  readonly found: number;
}

interface VersionRow extends Omit<DocumentVersion, 'docId' | 'expiresAtMs'> {
  readonly expiresAtMs: number | null;
}

const expired = 'v.died = 0 AND v.expires_at_ms <= $1 AND v.index_key = i.index_key';

const sql = statements({
  /** Returns one row when the index exists and the page is empty. */
  listDocuments: `
SELECT doc_id, metadata, chunk_count, "expiresAtMs", found FROM indexes i LEFT JOIN LATERAL (
    SELECT *, count(*) OVER () AS found,
      sum(octet_length(metadata)) OVER (ORDER BY doc_id) - octet_length(metadata) AS bytes_before
    FROM (SELECT doc_id, metadata, chunk_count, expires_at_ms AS "expiresAtMs" FROM versions v
      WHERE v.index_key = i.index_key AND v.died = 0 AND v.doc_id > $2
        AND (v.expires_at_ms IS NULL OR v.expires_at_ms > $5) ORDER BY v.doc_id LIMIT $3::integer + 1) d
  ) d ON true
WHERE i.id = $1 AND coalesce(bytes_before, 0) < $4 ORDER BY doc_id`,
  firstVersions: `SELECT version_id FROM versions JOIN indexes USING (index_key)
    WHERE indexes.id = $1 AND version_id = ANY($2) AND doc_id > $3 AND (expires_at_ms IS NULL OR expires_at_ms > $4)
    ORDER BY doc_id LIMIT $5`,
  resolveVersions: `SELECT version_id, doc_id, metadata, chunk_count, expires_at_ms AS "expiresAtMs" FROM versions JOIN indexes USING (index_key)
    WHERE indexes.id = $1 AND version_id = ANY($2) ORDER BY array_position($2::bigint[], version_id)`,
  countStored: `SELECT count(*) AS count FROM versions JOIN indexes USING (index_key)
    WHERE indexes.id = $1 AND died = 0 AND doc_id = ANY($2)`,
  findDocument: `SELECT version_id AS "versionId", metadata, chunk_count AS "chunkCount",
      token_vectors AS "tokenVectors", place.segment_id AS "segmentId", place.record, expires_at_ms AS "expiresAtMs"
    FROM versions v JOIN indexes i USING (index_key) CROSS JOIN ${placeNow}
    WHERE i.id = $1 AND v.died = 0 AND v.doc_id = $2`,
  countDocuments: `SELECT documents_stored - (SELECT count(*) FROM versions v WHERE ${expired}) AS documents,
      (SELECT coalesce(sum(chunk_count), 0) FROM versions v WHERE v.index_key = i.index_key AND v.died = 0
        AND (v.expires_at_ms IS NULL OR v.expires_at_ms > $1)) AS chunks
    FROM indexes i WHERE id = $2`,
  expiredIndexes: `SELECT id, tenant_id AS "tenantId" FROM indexes i
    WHERE EXISTS (SELECT FROM versions v WHERE ${expired})`,
  expiredVersions: `SELECT version_id FROM indexes i JOIN versions v ON ${expired}
    WHERE i.id = $2 ORDER BY v.expires_at_ms LIMIT $3`,
});

/** `scans`: for reads whose time grows with the documents. */
export function documentCatalog(database: Database, scans: Database) {
  return {
    async countStored(indexId, docIds) {
      const [row] = await database.rows<{ count: number }>(sql.countStored, [
        indexId,
        docIds.map((docId) => Buffer.from(docId)),
      ]);
      return row?.count ?? 0;
    },

    resolveVersions: (indexId, versionIds) => resolveVersions(database, indexId, versionIds),
    readMetadata: (indexId, versionIds) => resolveVersions(scans, indexId, versionIds),

    async firstVersions(indexId, versionIds, { after = '', limit, nowMs }) {
      const values = [indexId, versionIds, Buffer.from(after), nowMs, limit];
      const rows = await scans.rows<{ version_id: number }>(sql.firstVersions, values);
      return rows.map(({ version_id: id }) => id);
    },

    async listDocuments(indexId, { after = '', limit, nowMs, bytesMax }) {
      const rows = await scans.rows<DocumentRow>(sql.listDocuments, [
        indexId,
        Buffer.from(after),
        limit,
        bytesMax,
        nowMs,
      ]);
      const [first] = rows;
      if (first === undefined) return undefined;
      const documents = rows
        .slice(0, limit)
        .flatMap(({ doc_id: docId, metadata, chunk_count: chunkCount, expiresAtMs }) =>
          docId === null ? [] : withExpiry({ docId: docId.toString(), metadata, chunkCount, expiresAtMs }),
        );
      return { documents, hasMore: first.found > documents.length };
    },

    async findDocument(indexId, docId) {
      const [row] = await database.rows<VersionRow>(sql.findDocument, [indexId, Buffer.from(docId)]);
      return row && withExpiry({ ...row, docId });
    },

    async countDocuments(indexId, nowMs) {
      const [row] = await scans.rows<DocumentCount>(sql.countDocuments, [nowMs, indexId]);
      return row;
    },

    expiredIndexes: (nowMs) => scans.rows<ExpiredIndex>(sql.expiredIndexes, [nowMs]),

    async expiredVersions(indexId, nowMs, limit) {
      const rows = await scans.rows<{ version_id: number }>(sql.expiredVersions, [nowMs, indexId, limit]);
      return rows.map(({ version_id: id }) => id);
    },
  } satisfies Partial<Catalog>;
}

async function resolveVersions(
  database: Database,
  indexId: string,
  versionIds: readonly number[],
): Promise<ReadonlyMap<number, StoredDocument>> {
  const rows = await database.rows<{
    version_id: number;
    doc_id: Buffer;
    metadata: string;
    chunk_count: number;
    expiresAtMs: number | null;
  }>(sql.resolveVersions, [indexId, versionIds]);
  return new Map(
    rows.map(({ version_id: id, doc_id: docId, metadata, chunk_count: chunkCount, expiresAtMs }) => [
      id,
      withExpiry({ docId: docId.toString(), metadata, chunkCount, expiresAtMs }),
    ]),
  );
}
