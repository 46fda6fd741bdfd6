/** Writes on tenants. */
import { keyDetail, limitsDetail } from '../../audit-detail.ts';
import type { NewTenant, Tenant, TenantLimits } from '../../contract.ts';
import { tenantColumns, toTenant, type TenantColumns } from '../../rows.ts';
import { assertTenantName, duplicateTenantName } from '../../checks.ts';
import type { Connection } from '../connection.ts';
import { auditLog } from './audit-log.ts';
import { keyWriter } from './key-operations.ts';

const insertTenantSql = `INSERT INTO tenants (id, name, suspended, requests_per_minute, max_concurrent_requests,
    input_tokens, documents_max, created_at_ms)
  VALUES (?, ?, 0, ?, ?, ?, ?, ?)`;

const updateLimitsSql = `UPDATE tenants SET
    requests_per_minute = coalesce(?, requests_per_minute),
    max_concurrent_requests = coalesce(?, max_concurrent_requests),
    input_tokens = coalesce(?, input_tokens),
    documents_max = coalesce(?, documents_max)
  WHERE id = ? RETURNING ${tenantColumns}`;

const schedulePurgesSql = 'INSERT INTO purges (index_key) SELECT index_key FROM indexes WHERE tenant_id = ?';

export function tenantOperations(connection: Connection) {
  const note = auditLog(connection);
  const addKey = keyWriter(connection);
  const insertTenant = connection.prepare(insertTenantSql);
  const nameTaken = connection.prepare<[string], number>('SELECT 1 FROM tenants WHERE name = ?').pluck();
  const updateSuspended = connection.prepare<[number, string], TenantColumns>(
    `UPDATE tenants SET suspended = ? WHERE id = ? RETURNING ${tenantColumns}`,
  );
  const updateLimits = connection.prepare<unknown[], TenantColumns>(updateLimitsSql);
  const selectIndexIds = connection
    .prepare<[string], string>('SELECT id FROM indexes WHERE tenant_id = ?')
    .pluck();
  const schedulePurges = connection.prepare(schedulePurgesSql);
  const deleteIndexes = connection.prepare('DELETE FROM indexes WHERE tenant_id = ?');
  const deleteUsage = connection.prepare('DELETE FROM usage_months WHERE tenant_id = ?');
  const deleteTenantRow = connection.prepare('DELETE FROM tenants WHERE id = ?');

  return {
    createTenant(actor: string, { id, name, limits, key: added }: NewTenant): Tenant {
      assertTenantName(name);
      if (nameTaken.get(name) !== undefined) throw duplicateTenantName();
      const createdAtMs = Date.now();
      insertTenant.run(id, name, ...valuesOf(limits), createdAtMs);
      const key = added && addKey({ ...added, tenantId: id });
      note(actor, 'tenant_created', id, { ...(key && keyDetail(key)), ...limitsDetail(limits) });
      return { id, name, suspended: false, limits, createdAtMs };
    },

    setTenantSuspended(actor: string, tenantId: string, suspended: boolean): Tenant | undefined {
      const row = updateSuspended.get(suspended ? 1 : 0, tenantId);
      if (row !== undefined) note(actor, suspended ? 'tenant_suspended' : 'tenant_resumed', tenantId);
      return row && toTenant(row);
    },

    setTenantLimits(actor: string, tenantId: string, limits: Partial<TenantLimits>): Tenant | undefined {
      const row = updateLimits.get(...valuesOf(limits), tenantId);
      if (row !== undefined) note(actor, 'limits_changed', tenantId, limitsDetail(limits));
      return row && toTenant(row);
    },

    deleteTenant(actor: string, tenantId: string): { readonly indexIds: readonly string[] } | undefined {
      const indexIds = selectIndexIds.all(tenantId);
      schedulePurges.run(tenantId);
      deleteIndexes.run(tenantId);
      deleteUsage.run(tenantId);
      if (deleteTenantRow.run(tenantId).changes === 0) return undefined;
      note(actor, 'tenant_deleted', tenantId, { indexes: indexIds.length });
      return { indexIds };
    },

    noteRefusedLogin(actor: string, detail: Readonly<Record<string, unknown>>): void {
      note(actor, 'login_refused', undefined, detail);
    },
  };
}

/** In the order of the statements; null leaves a limit as it is. */
function valuesOf(limits: Partial<TenantLimits>): readonly (number | bigint | null)[] {
  const { requestsPerMinute, maxConcurrentRequests, inputTokens, documents } = limits;
  return [requestsPerMinute ?? null, maxConcurrentRequests ?? null, inputTokens ?? null, documents ?? null];
}
