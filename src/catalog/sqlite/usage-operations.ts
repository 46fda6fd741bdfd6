/** Writes on `usage.db`. Every function runs inside the usage writer's transaction. */
import type { UsageEvent } from '../contract.ts';
import type { Connection } from './connection.ts';
import { addUsageSql, usageParameters } from './rows.ts';

export function usageOperations(connection: Connection) {
  const add = connection.prepare(addUsageSql);
  const deleteUsage = connection.prepare('DELETE FROM usage_months WHERE tenant_id = ?');
  return {
    recordUsage(event: UsageEvent): void {
      add.run(...usageParameters(event));
    },
    deleteTenantUsage(tenantId: string): void {
      deleteUsage.run(tenantId);
    },
    ping(): void {
      // The commit marker of the group is the write.
    },
  };
}

export type UsageOperations = ReturnType<typeof usageOperations>;
