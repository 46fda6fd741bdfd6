/** The audit log: its entries are written inside the transaction of the act itself. */
import { auditEntriesMax, tenantActsMax, tenantActsMs, type AuditAct, type Catalog } from '../contract.ts';
import { auditColumns, toAuditEntry, type AuditColumns } from '../rows.ts';
import { type Database, type Queries, statements } from './database.ts';

export type NoteAct = (
  queries: Queries,
  act: AuditAct,
  tenantId: string | undefined,
  detail?: Readonly<Record<string, unknown>>,
) => Promise<void>;

const sql = statements({
  noteAct:
    'INSERT INTO audit_log (at_ms, actor, act, tenant_id, detail) VALUES ($1, $2, $3, $4, $5) RETURNING id',
  earlierAct: `SELECT at_ms FROM audit_log WHERE tenant_id = $1 AND act = $2
    ORDER BY id DESC LIMIT 1 OFFSET ${tenantActsMax - 1}`,
  forgetActs: 'DELETE FROM audit_log WHERE id <= $1',
  listAudit: `SELECT ${auditColumns} FROM audit_log WHERE id < $1 ORDER BY id DESC LIMIT $2`,
  listAuditOfTenant: `SELECT ${auditColumns} FROM audit_log WHERE id < $1 AND tenant_id = $3 ORDER BY id DESC LIMIT $2`,
});

/** Returns the function that writes entries of this actor. */
export function auditLog(actor: string): NoteAct {
  return async (queries, act, tenantId, detail = {}) => {
    if (act === 'match_fields_changed') {
      const [earlier] = await queries.rows<{ at_ms: number }>(sql.earlierAct, [tenantId, act]);
      if ((earlier?.at_ms ?? 0) > Date.now() - tenantActsMs) return;
    }
    const values = [Date.now(), actor, act, tenantId ?? null, JSON.stringify(detail)];
    const [row] = await queries.rows<{ id: number }>(sql.noteAct, values);
    const last = (row?.id ?? 0) - auditEntriesMax;
    await queries.rows(sql.forgetActs, [last]);
  };
}

export function auditCatalog(database: Database) {
  return {
    async listAudit({ before = Number.MAX_SAFE_INTEGER, limit, tenantId }) {
      const rows =
        tenantId === undefined
          ? await database.rows<AuditColumns>(sql.listAudit, [before, limit])
          : await database.rows<AuditColumns>(sql.listAuditOfTenant, [before, limit, tenantId]);
      return rows.map(toAuditEntry);
    },
  } satisfies Partial<Catalog>;
}
