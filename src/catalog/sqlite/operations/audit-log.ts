/** Notes of what was done, each inside the transaction that does it. */
import { auditEntriesMax, type AuditAct } from '../../contract.ts';
import type { Connection } from '../connection.ts';

export type NoteAct = (
  act: AuditAct,
  tenantId: string | undefined,
  detail?: Readonly<Record<string, unknown>>,
  /** Unless it is whoever opened the catalog. */
  by?: string,
) => void;

export function auditLog(connection: Connection, actor: string): NoteAct {
  const insert = connection.prepare(
    'INSERT INTO audit_log (at_ms, actor, act, tenant_id, detail) VALUES (?, ?, ?, ?, ?)',
  );
  const forget = connection.prepare('DELETE FROM audit_log WHERE id <= ?');
  return (act, tenantId, detail = {}, by = actor) => {
    const { lastInsertRowid } = insert.run(Date.now(), by, act, tenantId ?? null, JSON.stringify(detail));
    forget.run(Number(lastInsertRowid) - auditEntriesMax);
  };
}
