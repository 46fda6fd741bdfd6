/** Writes on tenants and keys. Every function runs inside the writer's transaction. */
import { keyDetail, limitsDetail } from '../../audit-detail.ts';
import {
  endedSessionKeptMs,
  type ApiKey,
  type EndedSession,
  type KeyAccess,
  type Tenant,
  type TenantLimits,
} from '../../contract.ts';
import { assertInvariant } from '../../../errors.ts';
import type { Connection } from '../connection.ts';
import { assertTenantName, duplicateTenantName } from '../../tenant-name.ts';
import { keyColumns, toApiKey, toTenant } from '../rows.ts';
import type { KeyColumns } from '../rows.ts';
import { auditLog } from './audit-log.ts';
import { tenantById } from './statements.ts';

const liveKeysMax = 2;

export interface NewKey {
  readonly id: string;
  readonly tenantId: string;
  readonly hash: Uint8Array;
  readonly access?: KeyAccess;
}

/** `by`: who acts, unless it is whoever opened the catalog. */
interface Act {
  readonly by?: string | undefined;
}

/** `actor`: who does it, for the audit log. */
export function tenantOperations(connection: Connection, actor: string) {
  const note = auditLog(connection, actor);
  const insertTenant = connection.prepare(
    `INSERT INTO tenants (id, name, suspended, requests_per_minute, max_concurrent_requests, input_tokens,
       documents_max, created_at_ms)
     VALUES (?, ?, 0, ?, ?, ?, ?, ?)`,
  );
  const selectTenant = tenantById(connection);
  const nameTaken = connection.prepare<[string], number>('SELECT 1 FROM tenants WHERE name = ?').pluck();
  const updateSuspended = connection.prepare('UPDATE tenants SET suspended = ? WHERE id = ?');
  const updateLimits = connection.prepare(
    `UPDATE tenants SET
       requests_per_minute = coalesce(?, requests_per_minute),
       max_concurrent_requests = coalesce(?, max_concurrent_requests),
       input_tokens = coalesce(?, input_tokens),
       documents_max = coalesce(?, documents_max)
     WHERE id = ?`,
  );
  const insertKey = connection.prepare(
    'INSERT INTO api_keys (id, tenant_id, hash, access, created_at_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const selectKey = connection.prepare<[string], KeyColumns>(
    `SELECT ${keyColumns} FROM api_keys WHERE id = ?`,
  );
  const countLiveKeys = connection
    .prepare<[string], number>('SELECT count(*) FROM api_keys WHERE tenant_id = ? AND revoked_at_ms IS NULL')
    .pluck();
  const revoke = connection.prepare(
    'UPDATE api_keys SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL',
  );
  const insertEndedSession = connection.prepare(
    `INSERT INTO ended_sessions (digest, key_id, expires_at_ms) SELECT ?, id, ? FROM api_keys WHERE id = ?
     ON CONFLICT DO NOTHING`,
  );
  const deleteExpiredSessions = connection.prepare('DELETE FROM ended_sessions WHERE expires_at_ms < ?');
  const selectIndexIds = connection
    .prepare<[string], string>('SELECT id FROM indexes WHERE tenant_id = ?')
    .pluck();
  const schedulePurges = connection.prepare(
    'INSERT INTO purges (index_key) SELECT index_key FROM indexes WHERE tenant_id = ?',
  );
  const deleteIndexes = connection.prepare('DELETE FROM indexes WHERE tenant_id = ?');
  const deleteUsage = connection.prepare('DELETE FROM usage_months WHERE tenant_id = ?');
  const deleteTenantRow = connection.prepare('DELETE FROM tenants WHERE id = ?');

  const readTenant = (tenantId: string): Tenant | undefined => {
    const row = selectTenant.get(tenantId);
    return row === undefined ? undefined : toTenant(row);
  };
  const addKey = (key: NewKey): ApiKey => {
    const createdAtMs = Date.now();
    const { id, tenantId, hash, access = 'full' } = key;
    insertKey.run(id, tenantId, hash, access, createdAtMs);
    return { id, tenantId, access, createdAtMs, revokedAtMs: undefined };
  };

  return {
    createTenant(
      input: Act & {
        readonly id: string;
        readonly name: string;
        readonly limits: TenantLimits;
        readonly key?: { readonly id: string; readonly hash: Uint8Array };
      },
    ): Tenant {
      const { id, name, limits } = input;
      assertTenantName(name);
      if (nameTaken.get(name) !== undefined) throw duplicateTenantName();
      const createdAtMs = Date.now();
      insertTenant.run(
        id,
        name,
        limits.requestsPerMinute,
        limits.maxConcurrentRequests,
        limits.inputTokens,
        limits.documents,
        createdAtMs,
      );
      const key = input.key && addKey({ ...input.key, tenantId: id });
      note('tenant_created', id, { ...limitsDetail(limits), ...(key && keyDetail(key)) }, input.by);
      return { id, name, suspended: false, limits, createdAtMs };
    },

    setTenantSuspended(
      input: Act & {
        readonly tenantId: string;
        readonly suspended: boolean;
      },
    ): Tenant | undefined {
      const { tenantId, suspended } = input;
      const { changes } = updateSuspended.run(suspended ? 1 : 0, tenantId);
      if (changes > 0) note(suspended ? 'tenant_suspended' : 'tenant_resumed', tenantId, {}, input.by);
      return readTenant(tenantId);
    },

    setTenantLimits(
      input: Act & {
        readonly tenantId: string;
        readonly limits: Partial<TenantLimits>;
      },
    ): Tenant | undefined {
      const { limits } = input;
      const { changes } = updateLimits.run(
        limits.requestsPerMinute ?? null,
        limits.maxConcurrentRequests ?? null,
        limits.inputTokens ?? null,
        limits.documents ?? null,
        input.tenantId,
      );
      if (changes > 0) note('limits_changed', input.tenantId, limitsDetail(limits), input.by);
      return readTenant(input.tenantId);
    },

    deleteTenant({
      tenantId,
      by,
    }: Act & { readonly tenantId: string }): { readonly indexIds: readonly string[] } | undefined {
      if (readTenant(tenantId) === undefined) return undefined;
      const indexIds = selectIndexIds.all(tenantId);
      schedulePurges.run(tenantId);
      deleteIndexes.run(tenantId);
      deleteUsage.run(tenantId);
      deleteTenantRow.run(tenantId);
      note('tenant_deleted', tenantId, { indexes: indexIds.length }, by);
      return { indexIds };
    },

    createKey(
      input: Act & NewKey,
    ):
      | { readonly outcome: 'created'; readonly key: ApiKey }
      | { readonly outcome: 'tenant_missing' }
      | { readonly outcome: 'too_many_keys' } {
      if (readTenant(input.tenantId) === undefined) return { outcome: 'tenant_missing' };
      if ((countLiveKeys.get(input.tenantId) ?? 0) >= liveKeysMax) return { outcome: 'too_many_keys' };
      const key = addKey(input);
      note('key_created', key.tenantId, keyDetail(key), input.by);
      return { outcome: 'created', key };
    },

    revokeKey({ keyId, by }: Act & { readonly keyId: string }): ApiKey | undefined {
      const revoked = revoke.run(Date.now(), keyId).changes === 1;
      const row = selectKey.get(keyId);
      assertInvariant(!revoked || row !== undefined, 'a revoked key has a row');
      if (row === undefined) return undefined;
      const key = toApiKey(row);
      if (revoked) note('key_revoked', key.tenantId, keyDetail(key), by);
      return key;
    },

    endSession({ digest, keyId, expiresAtMs }: EndedSession): void {
      deleteExpiredSessions.run(Date.now() - endedSessionKeptMs);
      insertEndedSession.run(digest, expiresAtMs, keyId);
    },

    noteRefusedLogin({ detail, by }: Act & { readonly detail: Readonly<Record<string, unknown>> }): void {
      note('login_refused', undefined, detail, by);
    },
  };
}
