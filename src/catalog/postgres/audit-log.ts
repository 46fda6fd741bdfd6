/** What was done to tenants and keys. */
import { auditEntriesMax, type AuditAct, type AuditEntry, type Catalog } from '../contract.ts';
import type { Database, Queries } from './database.ts';

/** Inside the transaction that does it. */
export type NoteAct = (
  queries: Queries,
  act: AuditAct,
  tenantId: string | undefined,
  detail?: Readonly<Record<string, unknown>>,
) => Promise<void>;

export function auditLog(actor: string): NoteAct {
  return async (queries, act, tenantId, detail = {}) => {
    const text =
      'INSERT INTO audit_log (at_ms, actor, act, tenant_id, detail) VALUES ($1, $2, $3, $4, $5) RETURNING id';
    const [row] = await queries.rows<{ id: number }>({ name: 'note-act', text }, [
      Date.now(),
      actor,
      act,
      tenantId ?? null,
      JSON.stringify(detail),
    ]);
    const last = (row?.id ?? 0) - auditEntriesMax;
    await queries.rows({ name: 'forget-acts', text: 'DELETE FROM audit_log WHERE id <= $1' }, [last]);
  };
}

export function auditCatalog(database: Database): Pick<Catalog, 'listAudit'> {
  return {
    async listAudit({ before = Number.MAX_SAFE_INTEGER, limit, tenantId }) {
      const columns = 'id, at_ms AS "atMs", actor, act, tenant_id AS "tenantId", detail';
      const [name, condition, values] =
        tenantId === undefined
          ? ['list-audit', '', []]
          : ['list-audit-of-tenant', 'AND tenant_id = $3', [tenantId]];
      const text = `SELECT ${columns} FROM audit_log WHERE id < $1 ${condition} ORDER BY id DESC LIMIT $2`;
      const rows = await database.rows<AuditRow>({ name, text }, [before, limit, ...values]);
      return rows.map((row) => ({
        ...row,
        tenantId: row.tenantId ?? undefined,
        detail: JSON.parse(row.detail) as AuditEntry['detail'],
      }));
    },
  };
}

interface AuditRow extends Pick<AuditEntry, 'id' | 'atMs' | 'actor' | 'act'>, Record<string, unknown> {
  readonly tenantId: string | null;
  readonly detail: string;
}
