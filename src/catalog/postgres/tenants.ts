/** Tenants, keys and indexes. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { keyDetail, limitsDetail } from '../audit-detail.ts';
import type { Catalog, IndexRow, ModelVersionUse } from '../contract.ts';
import { ServiceError } from '../../errors.ts';
import { assertTenantName, duplicateTenantName } from '../tenant-name.ts';
import { auditLog } from './audit-log.ts';
import type { Database, Queries } from './database.ts';
import {
  indexColumns,
  keyColumns,
  tenantColumns,
  toApiKey,
  toIndexRow,
  toTenant,
  type IndexColumns,
  type KeyRow,
  type TenantRow,
} from './rows.ts';

type TenantCatalog = Pick<
  Catalog,
  | 'createTenant'
  | 'listTenants'
  | 'getTenant'
  | 'setTenantSuspended'
  | 'setTenantLimits'
  | 'deleteTenant'
  | 'createKey'
  | 'listKeys'
  | 'revokeKey'
  | 'noteRefusedLogin'
  | 'findKey'
  | 'endSession'
  | 'hasSessionEnded'
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

const liveKeysMax = 2;
/** Any number that nothing else in this database locks. */
const tenantNamesLock = 7_237_117_302;
/** Indexes read before other work of the thread has its turn: their schemas have 16 KiB. */
const indexesInTurn = 32;

/** `scans`: for lists. `actor`: who writes, for the audit log. */
export function tenantCatalog(database: Database, scans: Database, actor: string): TenantCatalog {
  const note = auditLog(actor);
  const addKey = (queries: Queries, key: Parameters<Catalog['createKey']>[0]) =>
    queries.rows<KeyRow>(
      {
        name: 'insert-key',
        text: `INSERT INTO api_keys (id, tenant_id, hash, access, created_at_ms) VALUES ($1, $2, $3, $4, $5)
          RETURNING ${keyColumns}`,
      },
      [key.id, key.tenantId, Buffer.from(key.hash), key.access ?? 'full', Date.now()],
    );
  /** Whoever counts what a tenant has, to add to it, comes one after the other. */
  const lockTenant = async (queries: Queries, tenantId: string): Promise<boolean> => {
    const text = 'SELECT id FROM tenants WHERE id = $1 FOR NO KEY UPDATE';
    return (await queries.rows({ name: 'lock-tenant', text }, [tenantId])).length > 0;
  };

  /** The rows of indexes that are to have other names: commits into them, and whoever gives out names of the tenant, wait. */
  const lockNames = async (queries: Queries, tenantId: string, indexIds: readonly string[]) => {
    const text = `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1 AND id = ANY($2)
      ORDER BY index_key FOR UPDATE`;
    const found = await queries.rows<IndexColumns>({ name: 'lock-names', text }, [tenantId, indexIds]);
    await lockTenant(queries, tenantId);
    return found;
  };
  const setName = (queries: Queries, indexId: string, name: Buffer) =>
    queries.rows({ name: 'set-index-name', text: 'UPDATE indexes SET name = $2 WHERE id = $1' }, [
      indexId,
      name,
    ]);

  return {
    async createTenant({ id, name, limits, key }) {
      assertTenantName(name);
      return await database.transaction(async (queries) => {
        // When two are made at the same time, the second finds the first.
        const turn = `SELECT pg_advisory_xact_lock(${tenantNamesLock})`;
        await queries.rows({ name: 'lock-tenant-names', text: turn });
        const taken = 'SELECT FROM tenants WHERE name = $1 LIMIT 1';
        const others = await queries.rows({ name: 'tenant-name-taken', text: taken }, [name]);
        if (others.length > 0) throw duplicateTenantName();
        const createdAtMs = Date.now();
        await queries.rows(
          {
            name: 'insert-tenant',
            text: `INSERT INTO tenants (id, name, requests_per_minute, max_concurrent_requests, input_tokens,
                documents_max, created_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
          },
          [
            id,
            name,
            limits.requestsPerMinute,
            limits.maxConcurrentRequests,
            limits.inputTokens,
            limits.documents,
            createdAtMs,
          ],
        );
        const [row] = key === undefined ? [] : await addKey(queries, { ...key, tenantId: id });
        await note(queries, 'tenant_created', id, {
          ...limitsDetail(limits),
          ...(row && keyDetail(toApiKey(row))),
        });
        return { id, name, suspended: false, limits, createdAtMs };
      });
    },

    noteRefusedLogin: (detail) =>
      database.transaction((queries) => note(queries, 'login_refused', undefined, detail)),

    async listTenants(page) {
      const text = `SELECT ${tenantColumns} FROM tenants WHERE (created_at_ms, id) > ($1, $2)
        ORDER BY created_at_ms, id LIMIT $3`;
      const { createdAtMs, id } = page?.after ?? { createdAtMs: -1, id: '' };
      const values = [createdAtMs, id, page?.limit ?? null];
      return (await scans.rows<TenantRow>({ name: 'list-tenants', text }, values)).map(toTenant);
    },

    async getTenant(tenantId) {
      const text = `SELECT ${tenantColumns} FROM tenants WHERE id = $1`;
      const [row] = await database.rows<TenantRow>({ name: 'get-tenant', text }, [tenantId]);
      return row && toTenant(row);
    },

    setTenantSuspended: (tenantId, suspended) =>
      database.transaction(async (queries) => {
        const text = `UPDATE tenants SET suspended = $2 WHERE id = $1 RETURNING ${tenantColumns}`;
        const [row] = await queries.rows<TenantRow>({ name: 'suspend-tenant', text }, [tenantId, suspended]);
        if (row === undefined) return undefined;
        await note(queries, suspended ? 'tenant_suspended' : 'tenant_resumed', tenantId);
        return toTenant(row);
      }),

    setTenantLimits: (tenantId, limits) =>
      database.transaction(async (queries) => {
        const [row] = await queries.rows<TenantRow>(
          {
            name: 'limit-tenant',
            text: `UPDATE tenants SET
                requests_per_minute = coalesce($2, requests_per_minute),
                max_concurrent_requests = coalesce($3, max_concurrent_requests),
                input_tokens = coalesce($4, input_tokens),
                documents_max = coalesce($5, documents_max)
              WHERE id = $1 RETURNING ${tenantColumns}`,
          },
          [
            tenantId,
            limits.requestsPerMinute,
            limits.maxConcurrentRequests,
            limits.inputTokens,
            limits.documents,
          ],
        );
        if (row === undefined) return undefined;
        await note(queries, 'limits_changed', tenantId, limitsDetail(limits));
        return toTenant(row);
      }),

    deleteTenant: (tenantId) =>
      database.transaction(async (queries) => {
        const indexes = await queries.rows<{ id: string; index_key: number }>(
          {
            name: 'lock-indexes-of-tenant',
            text: 'SELECT id, index_key FROM indexes WHERE tenant_id = $1 ORDER BY index_key FOR UPDATE',
          },
          [tenantId],
        );
        if (!(await lockTenant(queries, tenantId))) return undefined;
        await giveUpIndexes(
          queries,
          indexes.map(({ index_key: key }) => key),
        );
        await queries.rows({ name: 'delete-tenant', text: 'DELETE FROM tenants WHERE id = $1' }, [tenantId]);
        await note(queries, 'tenant_deleted', tenantId, { indexes: indexes.length });
        return { indexIds: indexes.map(({ id }) => id) };
      }),

    createKey: (key) =>
      database.transaction(async (queries) => {
        if (!(await lockTenant(queries, key.tenantId))) return { outcome: 'tenant_missing' };
        const text = 'SELECT id FROM api_keys WHERE tenant_id = $1 AND revoked_at_ms IS NULL';
        const live = await queries.rows({ name: 'live-keys', text }, [key.tenantId]);
        if (live.length >= liveKeysMax) return { outcome: 'too_many_keys' };
        const [row] = await addKey(queries, key);
        const created = toApiKey(row!);
        await note(queries, 'key_created', key.tenantId, keyDetail(created));
        return { outcome: 'created', key: created };
      }),

    async listKeys(tenantId) {
      const text = `SELECT ${keyColumns} FROM api_keys WHERE tenant_id = $1 ORDER BY created_at_ms, id`;
      return (await database.rows<KeyRow>({ name: 'list-keys', text }, [tenantId])).map(toApiKey);
    },

    revokeKey: (keyId) =>
      database.transaction(async (queries) => {
        const text = `UPDATE api_keys SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL RETURNING ${keyColumns}`;
        const [revoked] = await queries.rows<KeyRow>({ name: 'revoke-key', text }, [keyId, Date.now()]);
        if (revoked !== undefined) {
          const key = toApiKey(revoked);
          await note(queries, 'key_revoked', key.tenantId, keyDetail(key));
          return key;
        }
        const found = `SELECT ${keyColumns} FROM api_keys WHERE id = $1`;
        const [row] = await queries.rows<KeyRow>({ name: 'get-key', text: found }, [keyId]);
        return row && toApiKey(row);
      }),

    async findKey(keyId) {
      const text = `SELECT ${keyColumns}, api_keys.hash, ${tenantColumns}
        FROM api_keys JOIN tenants ON tenants.id = api_keys.tenant_id WHERE api_keys.id = $1`;
      const [row] = await database.rows<KeyRow & TenantRow & { readonly hash: Buffer }>(
        { name: 'find-key', text },
        [keyId],
      );
      return row && { key: toApiKey(row), hash: row.hash, tenant: toTenant(row) };
    },

    async endSession({ digest, keyId, expiresAtMs }) {
      const text = `INSERT INTO ended_sessions (digest, key_id, expires_at_ms) SELECT $1, id, $3 FROM api_keys WHERE id = $2
        ON CONFLICT DO NOTHING`;
      await database.rows({ name: 'end-session', text }, [Buffer.from(digest), keyId, expiresAtMs]);
    },

    async hasSessionEnded(digest) {
      const text = 'SELECT 1 FROM ended_sessions WHERE digest = $1';
      const found = await database.rows({ name: 'find-ended-session', text }, [Buffer.from(digest)]);
      return found.length > 0;
    },

    createIndex: (index, indexesMax) =>
      database.transaction(async (queries) => {
        if (!(await lockTenant(queries, index.tenantId))) {
          throw new ServiceError('authentication_failed', 'the tenant no longer exists');
        }
        const name = Buffer.from(index.name);
        const [found] = await queries.rows<{ count: number; taken: boolean | null }>(
          {
            name: 'count-indexes',
            text: 'SELECT count(*) AS count, bool_or(name = $2) AS taken FROM indexes WHERE tenant_id = $1',
          },
          [index.tenantId, name],
        );
        if (found?.taken === true) return { outcome: 'duplicate_name' };
        if ((found?.count ?? 0) >= indexesMax) return { outcome: 'too_many_indexes' };
        const { chunking } = index;
        const createdAtMs = Date.now();
        await queries.rows(
          {
            name: 'insert-index',
            text: `INSERT INTO indexes (id, tenant_id, name, model, model_version, max_tokens, overlap_tokens,
                minimum_chunk_tokens, metadata_schema, status, created_at_ms)
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'ready', $10)`,
          },
          [
            index.id,
            index.tenantId,
            name,
            index.model,
            index.modelVersion,
            chunking.maxTokens,
            chunking.overlapTokens,
            chunking.minimumChunkTokens,
            index.metadataSchema,
            createdAtMs,
          ],
        );
        return { outcome: 'created', index: { ...index, status: 'ready', createdAtMs } };
      }),

    async listIndexes(tenantId, page): Promise<readonly IndexRow[]> {
      const all = `SELECT ${indexColumns} FROM indexes WHERE tenant_id = $1`;
      const found =
        page === undefined
          ? await scans.rows<IndexColumns>(
              { name: 'list-indexes', text: `${all} ORDER BY created_at_ms, index_key` },
              [tenantId],
            )
          : await scans.rows<IndexColumns>(
              {
                name: 'list-indexes-page',
                text: `${all} AND (created_at_ms, id) > ($2, $3) ORDER BY created_at_ms, id LIMIT $4`,
              },
              [tenantId, page.after?.createdAtMs ?? -1, page.after?.id ?? '', page.limit],
            );
      const rows: IndexRow[] = [];
      for (const [place, row] of found.entries()) {
        if (place > 0 && place % indexesInTurn === 0) await nextTurn();
        rows.push(toIndexRow(row));
      }
      return rows;
    },

    async getIndex(tenantId, indexId) {
      const text = `SELECT ${indexColumns} FROM indexes WHERE id = $1 AND tenant_id = $2`;
      const [row] = await database.rows<IndexColumns>({ name: 'get-index', text }, [indexId, tenantId]);
      return row && toIndexRow(row);
    },

    async listIndexIds() {
      const rows = await scans.rows<{ id: string }>({
        name: 'list-index-ids',
        text: 'SELECT id FROM indexes',
      });
      return rows.map(({ id }) => id);
    },

    listModelVersions: () =>
      scans.rows<ModelVersionUse & Record<string, unknown>>({
        name: 'list-model-versions',
        text: `SELECT model, model_version AS "modelVersion", count(*) AS indexes FROM indexes
          GROUP BY model, model_version`,
      }),

    async setIndexStatus(indexId, status) {
      const text = 'UPDATE indexes SET status = $2 WHERE id = $1';
      await database.rows({ name: 'set-index-status', text }, [indexId, status]);
    },

    renameIndex: (tenantId, indexId, name) =>
      database.transaction(async (queries) => {
        const [index] = await lockNames(queries, tenantId, [indexId]);
        if (index === undefined) return { outcome: 'index_missing' };
        const taken = 'SELECT id FROM indexes WHERE tenant_id = $1 AND name = $2 AND id <> $3';
        const wanted = Buffer.from(name);
        const others = await queries.rows({ name: 'name-taken', text: taken }, [tenantId, wanted, indexId]);
        if (others.length > 0) return { outcome: 'duplicate_name' };
        await setName(queries, indexId, wanted);
        return { outcome: 'renamed', index: toIndexRow({ ...index, name: wanted }) };
      }),

    swapIndexNames: (tenantId, indexId, otherId) =>
      database.transaction(async (queries) => {
        const found = await lockNames(queries, tenantId, [indexId, otherId]);
        const index = found.find(({ id }) => id === indexId);
        const other = found.find(({ id }) => id === otherId);
        if (index === undefined || other === undefined) return undefined;
        // Its own is never empty.
        await setName(queries, indexId, Buffer.alloc(0));
        await setName(queries, otherId, index.name);
        await setName(queries, indexId, other.name);
        return toIndexRow({ ...index, name: other.name });
      }),

    deleteIndex: (tenantId, indexId) =>
      database.transaction(async (queries) => {
        const [index] = await queries.rows<{ index_key: number; documents_stored: number }>(
          {
            name: 'lock-index-of-tenant',
            text: 'SELECT index_key, documents_stored FROM indexes WHERE id = $1 AND tenant_id = $2 FOR UPDATE',
          },
          [indexId, tenantId],
        );
        if (index === undefined) return false;
        await giveUpIndexes(queries, [index.index_key]);
        await queries.rows(
          {
            name: 'subtract-documents',
            text: 'UPDATE tenants SET documents_stored = documents_stored - $2 WHERE id = $1',
          },
          [tenantId, index.documents_stored],
        );
        return true;
      }),
  };
}

/** Their segments are garbage from now on, and their documents are purged in the background. */
async function giveUpIndexes(queries: Queries, indexKeys: readonly number[]): Promise<void> {
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
