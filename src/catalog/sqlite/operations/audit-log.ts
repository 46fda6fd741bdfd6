/** Writes entries of the audit log, each inside the transaction of the act itself. */
import { auditEntriesMax, tenantActsMax, tenantActsMs, type AuditAct } from '../../contract.ts';
import type { Connection } from '../connection.ts';

export type NoteAct = (
  actor: string,
  act: AuditAct,
  tenantId: string | undefined,
  detail?: Readonly<Record<string, unknown>>,
) => void;

export function auditLog(connection: Connection): NoteAct {
  const insert = connection.prepare(
    'INSERT INTO audit_log (at_ms, actor, act, tenant_id, detail) VALUES (?, ?, ?, ?, ?)',
  );
  const earlierAct = connection
    .prepare<[string | undefined, string], number>(
      `SELECT at_ms FROM audit_log WHERE tenant_id = ? AND act = ? ORDER BY id DESC LIMIT 1 OFFSET ${tenantActsMax - 1}`,
    )
    .pluck();
  const forget = connection.prepare('DELETE FROM audit_log WHERE id <= ?');
  return (actor, act, tenantId, detail = {}) => {
    if (act === 'match_fields_changed' && (earlierAct.get(tenantId, act) ?? 0) > Date.now() - tenantActsMs)
      return;
    const { lastInsertRowid } = insert.run(Date.now(), actor, act, tenantId ?? null, JSON.stringify(detail));
    forget.run(Number(lastInsertRowid) - auditEntriesMax);
  };
}
