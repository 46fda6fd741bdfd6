/** Tenants. */
import { keyDetail, limitsDetail } from '../audit-detail.ts';
import { assertTenantName, duplicateTenantName } from '../checks.ts';
import type { Catalog, TenantLimits } from '../contract.ts';
import { tenantColumns, toTenant, type TenantColumns } from '../rows.ts';
import { auditLog, type NoteAct } from './audit-log.ts';
import { type Database, type Queries, statements } from './database.ts';
import { giveUpIndexes, lockTenant } from './indexes.ts';
import { addKey } from './keys.ts';

/** Any number that nothing else in this database locks. */
const tenantNamesLock = 7_237_117_302;

const sql = statements({
  insertTenant: `INSERT INTO tenants (id, name, created_at_ms, requests_per_minute, max_concurrent_requests, input_tokens,
      documents_max) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
  listTenants: `SELECT ${tenantColumns} FROM tenants WHERE (created_at_ms, id) > ($1, $2)
    ORDER BY created_at_ms, id LIMIT $3`,
  suspendTenant: `UPDATE tenants SET suspended = $2 WHERE id = $1 RETURNING ${tenantColumns}`,
  limitTenant: `UPDATE tenants SET
      requests_per_minute = coalesce($2, requests_per_minute),
      max_concurrent_requests = coalesce($3, max_concurrent_requests),
      input_tokens = coalesce($4, input_tokens),
      documents_max = coalesce($5, documents_max)
    WHERE id = $1 RETURNING ${tenantColumns}`,
  lockIndexesOfTenant: 'SELECT id, index_key FROM indexes WHERE tenant_id = $1 ORDER BY index_key FOR UPDATE',
  lockTenantNames: `SELECT pg_advisory_xact_lock(${tenantNamesLock})`,
  tenantNameTaken: 'SELECT FROM tenants WHERE name = $1 LIMIT 1',
  getTenant: `SELECT ${tenantColumns} FROM tenants WHERE id = $1`,
  deleteTenant: 'DELETE FROM tenants WHERE id = $1',
});

/** `scans`: for lists. `actor`: of the entries in the audit log. */
export function tenantCatalog(database: Database, scans: Database, actor: string) {
  const note = auditLog(actor);
  return {
    async createTenant(tenant) {
      assertTenantName(tenant.name);
      return await database.transaction((queries) => createTenant(queries, note, tenant));
    },

    noteRefusedLogin: (detail) =>
      database.transaction((queries) => note(queries, 'login_refused', undefined, detail)),

    async listTenants(page) {
      const { createdAtMs, id } = page?.after ?? { createdAtMs: -1, id: '' };
      const rows = await scans.rows<TenantColumns>(sql.listTenants, [createdAtMs, id, page?.limit ?? null]);
      return rows.map(toTenant);
    },

    async getTenant(tenantId) {
      const [row] = await database.rows<TenantColumns>(sql.getTenant, [tenantId]);
      return row && toTenant(row);
    },

    setTenantSuspended: (tenantId, suspended) =>
      database.transaction(async (queries) => {
        const [row] = await queries.rows<TenantColumns>(sql.suspendTenant, [tenantId, suspended]);
        if (row !== undefined)
          await note(queries, suspended ? 'tenant_suspended' : 'tenant_resumed', tenantId);
        return row && toTenant(row);
      }),

    setTenantLimits: (tenantId, limits) =>
      database.transaction(async (queries) => {
        const [row] = await queries.rows<TenantColumns>(sql.limitTenant, [tenantId, ...valuesOf(limits)]);
        if (row !== undefined) await note(queries, 'limits_changed', tenantId, limitsDetail(limits));
        return row && toTenant(row);
      }),

    deleteTenant: (tenantId) =>
      database.transaction(async (queries) => {
        const indexes = await queries.rows<{ id: string; index_key: number }>(sql.lockIndexesOfTenant, [
          tenantId,
        ]);
        if (!(await lockTenant(queries, tenantId))) return undefined;
        const keys = indexes.map(({ index_key: key }) => key);
        await giveUpIndexes(queries, keys);
        await queries.rows(sql.deleteTenant, [tenantId]);
        await note(queries, 'tenant_deleted', tenantId, { indexes: indexes.length });
        return { indexIds: indexes.map(({ id }) => id) };
      }),
  } satisfies Partial<Catalog>;
}

async function createTenant(
  queries: Queries,
  note: NoteAct,
  { id, name, limits, key: added }: Parameters<Catalog['createTenant']>[0],
): ReturnType<Catalog['createTenant']> {
  // Two transactions that create tenants run one after the other. So the second finds the name of the first.
  await queries.rows(sql.lockTenantNames);
  if ((await queries.rows(sql.tenantNameTaken, [name])).length > 0) throw duplicateTenantName();
  const createdAtMs = Date.now();
  await queries.rows(sql.insertTenant, [id, name, createdAtMs, ...valuesOf(limits)]);
  const key = added && (await addKey(queries, { ...added, tenantId: id }));
  await note(queries, 'tenant_created', id, { ...(key && keyDetail(key)), ...limitsDetail(limits) });
  return { id, name, suspended: false, limits, createdAtMs };
}

/** In the order of the statements. */
function valuesOf(limits: Partial<TenantLimits>): readonly (number | bigint | undefined)[] {
  return [limits.requestsPerMinute, limits.maxConcurrentRequests, limits.inputTokens, limits.documents];
}
