/** Locks that several kinds of transactions take. */
import { type Queries, statements } from './database.ts';

const sql = statements({
  lockTenant: 'SELECT id FROM tenants WHERE id = $1 FOR NO KEY UPDATE',
});

/**
 * Transactions that add something to a tenant up to a limit run one after the other. Returns whether there is such a tenant.
 */
export async function lockTenant(queries: Queries, tenantId: string): Promise<boolean> {
  return (await queries.rows(sql.lockTenant, [tenantId])).length > 0;
}
