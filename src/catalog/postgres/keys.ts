/** Keys, and sessions of the console. */
import { keyDetail } from '../audit-detail.ts';
import { assertKeyName } from '../checks.ts';
import { keyUseIntervalMs, liveKeysMax, type Catalog, type KeyRecord, type NewKey } from '../contract.ts';
import {
  keyColumns,
  tenantColumns,
  toApiKey,
  toTenant,
  type KeyColumns,
  type TenantColumns,
} from '../rows.ts';
import { auditLog } from './audit-log.ts';
import { type Database, type Queries, statements } from './database.ts';
import { lockTenant } from './indexes.ts';

const sql = statements({
  insertKey: `INSERT INTO api_keys (id, tenant_id, name, hash, access, created_at_ms, requests_per_minute,
      max_concurrent_requests) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    RETURNING ${keyColumns}`,
  liveKeys: 'SELECT id FROM api_keys WHERE tenant_id = $1 AND revoked_at_ms IS NULL',
  listKeys: `SELECT ${keyColumns} FROM api_keys WHERE tenant_id = $1 ORDER BY created_at_ms, id`,
  revokeKey: `UPDATE api_keys SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL RETURNING ${keyColumns}`,
  findKey: `SELECT ${keyColumns}, api_keys.hash, ${tenantColumns}
    FROM api_keys JOIN tenants ON tenants.id = api_keys.tenant_id WHERE api_keys.id = $1`,
  noteUse: `UPDATE api_keys SET last_used_at_ms = $2 WHERE id = $1 AND coalesce(last_used_at_ms <= $3, true)`,
  endSession: `INSERT INTO ended_sessions (digest, key_id, expires_at_ms) SELECT $1, id, $3 FROM api_keys WHERE id = $2
    ON CONFLICT DO NOTHING`,
  findEndedSession: 'SELECT 1 FROM ended_sessions WHERE digest = $1',
  getKey: `SELECT ${keyColumns} FROM api_keys WHERE id = $1`,
});

/** Stores a new key. */
export async function addKey(
  queries: Queries,
  { id, tenantId, name, hash, access = 'full', requestsPerMinute, maxConcurrentRequests }: NewKey,
): Promise<ReturnType<typeof toApiKey>> {
  const limits = [requestsPerMinute, maxConcurrentRequests];
  const values = [id, tenantId, name, Buffer.from(hash), access, Date.now(), ...limits];
  const [row] = await queries.rows<KeyColumns>(sql.insertKey, values);
  return toApiKey(row!);
}

/** `actor`: of the entries in the audit log. */
export function keyCatalog(database: Database, actor: string) {
  const note = auditLog(actor);
  return {
    createKey: async (added) => {
      assertKeyName(added.name);
      return await database.transaction(async (queries) => {
        if (!(await lockTenant(queries, added.tenantId))) return { outcome: 'tenant_missing' };
        const live = await queries.rows(sql.liveKeys, [added.tenantId]);
        if (live.length >= liveKeysMax) return { outcome: 'too_many_keys' };
        const key = await addKey(queries, added);
        await note(queries, 'key_created', key.tenantId, keyDetail(key));
        return { outcome: 'created', key };
      });
    },

    listKeys: async (tenantId) => (await database.rows<KeyColumns>(sql.listKeys, [tenantId])).map(toApiKey),

    revokeKey: (keyId) =>
      database.transaction(async (queries) => {
        const [revoked] = await queries.rows<KeyColumns>(sql.revokeKey, [keyId, Date.now()]);
        const [row] = revoked === undefined ? await queries.rows<KeyColumns>(sql.getKey, [keyId]) : [revoked];
        const key = row && toApiKey(row);
        if (revoked !== undefined && key !== undefined)
          await note(queries, 'key_revoked', key.tenantId, keyDetail(key));
        return key;
      }),

    async findKey(keyId) {
      const [row] = await database.rows<KeyColumns & TenantColumns & Pick<KeyRecord, 'hash'>>(sql.findKey, [
        keyId,
      ]);
      return row && { key: toApiKey(row), hash: row.hash, tenant: toTenant(row) };
    },

    async noteKeyUse(keyId, atMs) {
      await database.rows(sql.noteUse, [keyId, atMs, atMs - keyUseIntervalMs]);
    },

    async endSession({ digest, keyId, expiresAtMs }) {
      await database.rows(sql.endSession, [Buffer.from(digest), keyId, expiresAtMs]);
    },

    hasSessionEnded: async (digest) =>
      (await database.rows(sql.findEndedSession, [Buffer.from(digest)])).length > 0,
  } satisfies Partial<Catalog>;
}
