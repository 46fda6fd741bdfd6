/** Statements that more than one set of operations runs. */
import type { Connection } from '../connection.ts';
import { tenantColumns, type TenantColumns } from '../rows.ts';

export function tenantById(connection: Connection) {
  return connection
    .prepare<[string], TenantColumns>(`SELECT ${tenantColumns} FROM tenants WHERE id = ?`)
    .safeIntegers();
}

export function indexKeyById(connection: Connection) {
  return connection.prepare<[string], number>('SELECT index_key FROM indexes WHERE id = ?').pluck();
}
