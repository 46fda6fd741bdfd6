/** Indexes: their rows and names. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  Catalog,
  CreateIndexInput,
  CreateIndexResult,
  IndexChange,
  IndexRow,
  ModelVersionUse,
  UpdateIndexResult,
} from '../contract.ts';
import { matchFieldsDetail } from '../audit-detail.ts';
import { ServiceError } from '../../errors.ts';
import { indexColumns, toIndexRow, type IndexColumns } from '../rows.ts';
import { auditLog, type NoteAct } from './audit-log.ts';
import { type Database, type Queries, statements } from './database.ts';

/** After so many indexes other work of the thread has its turn: a metadata schema may have 16 KiB. */
const indexesInTurn = 32;

const sql = statements({
  lockTenant: 'SELECT id FROM tenants WHERE id = $1 FOR NO KEY UPDATE',
  countIndexes: 'SELECT count(*) AS count FROM indexes WHERE tenant_id = $1',
  insertIndex: `INSERT INTO indexes (id, tenant_id, name, model, model_version, max_tokens, overlap_tokens,
      minimum_chunk_tokens, metadata_schema, match_fields, status, created_at_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'ready', $11)`,
  listIndexes: `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1 ORDER BY created_at_ms, index_key`,
  listIndexesPage: `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1 AND (created_at_ms, id) > ($2, $3)
    ORDER BY created_at_ms, id LIMIT $4`,
  getIndex: `SELECT ${indexColumns} FROM indexes WHERE id = $1 AND tenant_id = $2`,
  findIndexId: 'SELECT id FROM indexes WHERE tenant_id = $1 AND name = $2',
  indexOfName: `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1 AND name = $2`,
  listModelVersions: `SELECT model, model_version AS "modelVersion", count(*) AS indexes FROM indexes
    GROUP BY model, model_version ORDER BY count(*) DESC, model, model_version`,
  lockNames: `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1 AND id = ANY($2)
    ORDER BY index_key FOR UPDATE`,
  nameTaken: 'SELECT id FROM indexes WHERE tenant_id = $1 AND name = $2 AND id <> $3',
  lockIndexOfTenant:
    'SELECT index_key, documents_stored FROM indexes WHERE id = $1 AND tenant_id = $2 FOR UPDATE',
  subtractDocuments: 'UPDATE tenants SET documents_stored = documents_stored - $2 WHERE id = $1',
  listIndexIds: 'SELECT id FROM indexes',
  setIndexStatus: 'UPDATE indexes SET status = $2 WHERE id = $1',
  setIndexName: 'UPDATE indexes SET name = $2 WHERE id = $1',
  setMatchFields: 'UPDATE indexes SET match_fields = $2 WHERE id = $1',
});

/** `scans`: for lists. `actor`: of the entries in the audit log. */
export function indexCatalog(database: Database, scans: Database, actor: string) {
  const note = auditLog(actor);
  return {
    createIndex: (...input) => database.transaction((queries) => createIndex(queries, note, ...input)),

    async listIndexes(tenantId, page) {
      const found =
        page === undefined
          ? await scans.rows<IndexColumns>(sql.listIndexes, [tenantId])
          : await scans.rows<IndexColumns>(sql.listIndexesPage, [
              tenantId,
              page.after?.createdAtMs ?? -1,
              page.after?.id ?? '',
              page.limit,
            ]);
      const rows: IndexRow[] = [];
      for (const [place, row] of found.entries()) {
        if (place > 0 && place % indexesInTurn === 0) await nextTurn();
        rows.push(toIndexRow(row));
      }
      return rows;
    },

    async getIndex(tenantId, indexId) {
      const [row] = await database.rows<IndexColumns>(sql.getIndex, [indexId, tenantId]);
      return row && toIndexRow(row);
    },

    async findIndexId(tenantId, name) {
      const [row] = await database.rows<{ id: string }>(sql.findIndexId, [tenantId, Buffer.from(name)]);
      return row?.id;
    },

    async listIndexIds() {
      return (await scans.rows<{ id: string }>(sql.listIndexIds)).map(({ id }) => id);
    },

    listModelVersions: () => scans.rows<ModelVersionUse>(sql.listModelVersions),

    async setIndexStatus(indexId, status) {
      await database.rows(sql.setIndexStatus, [indexId, status]);
    },

    updateIndex: (...input) => database.transaction((queries) => updateIndex(queries, note, ...input)),
    swapIndexNames: (...input) => database.transaction((queries) => swapIndexNames(queries, ...input)),
    deleteIndex: (...input) => database.transaction((queries) => deleteIndex(queries, ...input)),
  } satisfies Partial<Catalog>;
}

async function createIndex(
  queries: Queries,
  note: NoteAct,
  index: CreateIndexInput,
  indexesMax: number,
): Promise<CreateIndexResult> {
  const { id, tenantId, model, modelVersion, metadataSchema, matchFields } = index;
  if (!(await lockTenant(queries, tenantId))) {
    throw new ServiceError('authentication_failed', 'the tenant no longer exists');
  }
  const name = Buffer.from(index.name);
  const [named] = await queries.rows<IndexColumns>(sql.indexOfName, [tenantId, name]);
  if (named !== undefined) return { outcome: 'duplicate_name', index: toIndexRow(named) };
  const [found] = await queries.rows<{ count: number }>(sql.countIndexes, [tenantId]);
  if ((found?.count ?? 0) >= indexesMax) return { outcome: 'too_many_indexes' };
  const { maxTokens, overlapTokens, minimumChunkTokens } = index.chunking;
  const chunking = [maxTokens, overlapTokens, minimumChunkTokens];
  const createdAtMs = Date.now();
  const own = [model, modelVersion, ...chunking, metadataSchema, JSON.stringify(matchFields)];
  await queries.rows(sql.insertIndex, [id, tenantId, name, ...own, createdAtMs]);
  if (matchFields.length > 0) await note(queries, 'match_fields_changed', tenantId, matchFieldsDetail(index));
  return { outcome: 'created', index: { ...index, status: 'ready', createdAtMs } };
}

async function updateIndex(
  queries: Queries,
  note: NoteAct,
  tenantId: string,
  indexId: string,
  { name, matchFields }: IndexChange,
): Promise<UpdateIndexResult> {
  const [index] = await lockForRename(queries, tenantId, [indexId]);
  if (index === undefined) return { outcome: 'index_missing' };
  const before = toIndexRow(index);
  const updated = { ...before, name: name ?? before.name, matchFields: matchFields ?? before.matchFields };
  if (before.name !== updated.name) {
    const wanted = Buffer.from(updated.name);
    const others = await queries.rows(sql.nameTaken, [tenantId, wanted, indexId]);
    if (others.length > 0) return { outcome: 'duplicate_name' };
    await setName(queries, indexId, wanted);
  }
  const fields = JSON.stringify(updated.matchFields);
  if (JSON.stringify(before.matchFields) !== fields) {
    await queries.rows(sql.setMatchFields, [indexId, fields]);
    await note(queries, 'match_fields_changed', tenantId, matchFieldsDetail(updated));
  }
  return { outcome: 'updated', index: updated };
}

async function swapIndexNames(
  queries: Queries,
  tenantId: string,
  indexId: string,
  otherId: string,
): Promise<IndexRow | undefined> {
  const found = await lockForRename(queries, tenantId, [indexId, otherId]);
  const index = found.find(({ id }) => id === indexId);
  const other = found.find(({ id }) => id === otherId);
  if (index === undefined || other === undefined) return undefined;
  // No index has an empty name.
  await setName(queries, indexId, Buffer.alloc(0));
  await setName(queries, otherId, index.name);
  await setName(queries, indexId, other.name);
  return toIndexRow({ ...index, name: other.name });
}

async function deleteIndex(queries: Queries, tenantId: string, indexId: string): Promise<boolean> {
  const [index] = await queries.rows<{ index_key: number; documents_stored: number }>(sql.lockIndexOfTenant, [
    indexId,
    tenantId,
  ]);
  if (index === undefined) return false;
  await giveUpIndexes(queries, [index.index_key]);
  await queries.rows(sql.subtractDocuments, [tenantId, index.documents_stored]);
  return true;
}

/**
 * Transactions that add something to a tenant up to a limit run one after the other. Returns whether there is such a tenant.
 */
export async function lockTenant(queries: Queries, tenantId: string): Promise<boolean> {
  return (await queries.rows(sql.lockTenant, [tenantId])).length > 0;
}

/** Commits into these indexes, and whatever else gives names to indexes of the tenant, wait from here on. */
async function lockForRename(
  queries: Queries,
  tenantId: string,
  indexIds: readonly string[],
): Promise<readonly IndexColumns[]> {
  const found = await queries.rows<IndexColumns>(sql.lockNames, [tenantId, indexIds]);
  await lockTenant(queries, tenantId);
  return found;
}

async function setName(queries: Queries, indexId: string, name: string | Buffer): Promise<void> {
  await queries.rows(sql.setIndexName, [indexId, name]);
}

/** Deletes indexes. Their segments become garbage, and their documents are purged in the background. */
export async function giveUpIndexes(queries: Queries, indexKeys: readonly number[]): Promise<void> {
  for (const [name, text] of [
    [
      'replace-segments',
      `UPDATE segments SET state = 'replaced', since = now() WHERE index_key = ANY($1) AND state <> 'replaced'`,
    ],
    ['insert-purges', 'INSERT INTO purges (index_key) SELECT unnest($1::bigint[])'],
    ['delete-indexes', 'DELETE FROM indexes WHERE index_key = ANY($1)'],
  ] as const) {
    await queries.rows({ name, text }, [indexKeys]);
  }
}
