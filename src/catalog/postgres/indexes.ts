/** Indexes: their rows and names. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  Catalog,
  CreateIndexInput,
  CreateIndexResult,
  IndexRow,
  ModelVersionUse,
  RenameIndexResult,
} from '../contract.ts';
import { ServiceError } from '../../errors.ts';
import { indexColumns, toIndexRow, type IndexColumns } from '../rows.ts';
import type { Database, Queries } from './database.ts';
import { lockTenant } from './locks.ts';

type IndexCatalog = Pick<
  Catalog,
  | 'createIndex'
  | 'listIndexes'
  | 'getIndex'
  | 'listIndexIds'
  | 'listModelVersions'
  | 'setIndexStatus'
  | 'renameIndex'
  | 'swapIndexNames'
  | 'deleteIndex'
>;

/** After so many indexes other work of the thread has its turn: a metadata schema may have 16 KiB. */
const indexesInTurn = 32;

const countIndexes = {
  name: 'count-indexes',
  text: 'SELECT count(*) AS count, bool_or(name = $2) AS taken FROM indexes WHERE tenant_id = $1',
};
const insertIndex = {
  name: 'insert-index',
  text: `INSERT INTO indexes (id, tenant_id, name, model, model_version, max_tokens, overlap_tokens,
      minimum_chunk_tokens, metadata_schema, status, created_at_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'ready', $10)`,
};
const listIndexes = {
  name: 'list-indexes',
  text: `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1 ORDER BY created_at_ms, index_key`,
};
const listIndexesPage = {
  name: 'list-indexes-page',
  text: `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1 AND (created_at_ms, id) > ($2, $3)
    ORDER BY created_at_ms, id LIMIT $4`,
};
const getIndex = {
  name: 'get-index',
  text: `SELECT ${indexColumns} FROM indexes WHERE id = $1 AND tenant_id = $2`,
};
const listModelVersions = {
  name: 'list-model-versions',
  text: `SELECT model, model_version AS "modelVersion", count(*) AS indexes FROM indexes
    GROUP BY model, model_version`,
};
const lockIndexes = {
  name: 'lock-names',
  text: `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1 AND id = ANY($2)
    ORDER BY index_key FOR UPDATE`,
};
const nameTaken = {
  name: 'name-taken',
  text: 'SELECT id FROM indexes WHERE tenant_id = $1 AND name = $2 AND id <> $3',
};
const lockIndex = {
  name: 'lock-index-of-tenant',
  text: 'SELECT index_key, documents_stored FROM indexes WHERE id = $1 AND tenant_id = $2 FOR UPDATE',
};
const subtractDocuments = {
  name: 'subtract-documents',
  text: 'UPDATE tenants SET documents_stored = documents_stored - $2 WHERE id = $1',
};

/** `scans`: for lists. */
export function indexCatalog(database: Database, scans: Database): IndexCatalog {
  return {
    createIndex: (...input) => database.transaction((queries) => createIndex(queries, ...input)),

    async listIndexes(tenantId, page) {
      const found =
        page === undefined
          ? await scans.rows<IndexColumns>(listIndexes, [tenantId])
          : await scans.rows<IndexColumns>(listIndexesPage, [
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
      const [row] = await database.rows<IndexColumns>(getIndex, [indexId, tenantId]);
      return row && toIndexRow(row);
    },

    async listIndexIds() {
      const text = 'SELECT id FROM indexes';
      return (await scans.rows<{ id: string }>({ name: 'list-index-ids', text })).map(({ id }) => id);
    },

    listModelVersions: () => scans.rows<ModelVersionUse>(listModelVersions),

    async setIndexStatus(indexId, status) {
      const text = 'UPDATE indexes SET status = $2 WHERE id = $1';
      await database.rows({ name: 'set-index-status', text }, [indexId, status]);
    },

    renameIndex: (...input) => database.transaction((queries) => renameIndex(queries, ...input)),
    swapIndexNames: (...input) => database.transaction((queries) => swapIndexNames(queries, ...input)),
    deleteIndex: (...input) => database.transaction((queries) => deleteIndex(queries, ...input)),
  };
}

async function createIndex(
  queries: Queries,
  index: CreateIndexInput,
  indexesMax: number,
): Promise<CreateIndexResult> {
  const { id, tenantId, model, modelVersion, metadataSchema } = index;
  if (!(await lockTenant(queries, tenantId))) {
    throw new ServiceError('authentication_failed', 'the tenant no longer exists');
  }
  const name = Buffer.from(index.name);
  const [found] = await queries.rows<{ count: number; taken: boolean | null }>(countIndexes, [
    tenantId,
    name,
  ]);
  if (found?.taken === true) return { outcome: 'duplicate_name' };
  if ((found?.count ?? 0) >= indexesMax) return { outcome: 'too_many_indexes' };
  const { maxTokens, overlapTokens, minimumChunkTokens } = index.chunking;
  const chunking = [maxTokens, overlapTokens, minimumChunkTokens];
  const createdAtMs = Date.now();
  const values = [id, tenantId, name, model, modelVersion, ...chunking, metadataSchema, createdAtMs];
  await queries.rows(insertIndex, values);
  return { outcome: 'created', index: { ...index, status: 'ready', createdAtMs } };
}

async function renameIndex(
  queries: Queries,
  tenantId: string,
  indexId: string,
  name: string,
): Promise<RenameIndexResult> {
  const [index] = await lockForRename(queries, tenantId, [indexId]);
  if (index === undefined) return { outcome: 'index_missing' };
  const wanted = Buffer.from(name);
  const others = await queries.rows(nameTaken, [tenantId, wanted, indexId]);
  if (others.length > 0) return { outcome: 'duplicate_name' };
  await setName(queries, indexId, wanted);
  return { outcome: 'renamed', index: toIndexRow({ ...index, name }) };
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
  const [index] = await queries.rows<{ index_key: number; documents_stored: number }>(lockIndex, [
    indexId,
    tenantId,
  ]);
  if (index === undefined) return false;
  await giveUpIndexes(queries, [index.index_key]);
  await queries.rows(subtractDocuments, [tenantId, index.documents_stored]);
  return true;
}

/** Commits into these indexes, and whatever else gives names to indexes of the tenant, wait from here on. */
async function lockForRename(
  queries: Queries,
  tenantId: string,
  indexIds: readonly string[],
): Promise<readonly IndexColumns[]> {
  const found = await queries.rows<IndexColumns>(lockIndexes, [tenantId, indexIds]);
  await lockTenant(queries, tenantId);
  return found;
}

async function setName(queries: Queries, indexId: string, name: string | Buffer): Promise<void> {
  const text = 'UPDATE indexes SET name = $2 WHERE id = $1';
  await queries.rows({ name: 'set-index-name', text }, [indexId, name]);
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
