/** The audit log: its entries are written inside the transaction of the act itself. */
import { auditEntriesMax, type AuditAct, type Catalog } from '../contract.ts';
import { auditColumns, toAuditEntry, type AuditColumns } from '../rows.ts';
import type { Database, Queries } from './database.ts';

export type NoteAct = (
  queries: Queries,
  act: AuditAct,
  tenantId: string | undefined,
  detail?: Readonly<Record<string, unknown>>,
) => Promise<void>;

const insert = {
  name: 'note-act',
  text: 'INSERT INTO audit_log (at_ms, actor, act, tenant_id, detail) VALUES ($1, $2, $3, $4, $5) RETURNING id',
};

/** Returns the function that writes entries of this actor. */
export function auditLog(actor: string): NoteAct {
  return async (queries, act, tenantId, detail = {}) => {
    const values = [Date.now(), actor, act, tenantId ?? null, JSON.stringify(detail)];
    const [row] = await queries.rows<{ id: number }>(insert, values);
    const last = (row?.id ?? 0) - auditEntriesMax;
    await queries.rows({ name: 'forget-acts', text: 'DELETE FROM audit_log WHERE id <= $1' }, [last]);
  };
}

export function auditCatalog(database: Database): Pick<Catalog, 'listAudit'> {
  return {
    async listAudit({ before = Number.MAX_SAFE_INTEGER, limit, tenantId }) {
      const [name, condition, values] =
        tenantId === undefined
          ? ['list-audit', '', []]
          : ['list-audit-of-tenant', 'AND tenant_id = $3', [tenantId]];
      const text = `SELECT ${auditColumns} FROM audit_log WHERE id < $1 ${condition} ORDER BY id DESC LIMIT $2`;
      return (await database.rows<AuditColumns>({ name, text }, [before, limit, ...values])).map(
        toAuditEntry,
      );
    },
  };
}
