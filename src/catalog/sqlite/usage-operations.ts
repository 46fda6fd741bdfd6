/** Writes on `usage.db`. Every function runs inside the usage writer's transaction. */
import type { Connection } from './connection.ts';
import { foldJournals } from './usage-journal.ts';

export function usageOperations(connection: Connection, directory: string) {
  const deleteUsage = connection.prepare('DELETE FROM usage_months WHERE tenant_id = ?');
  return {
    foldJournals(): void {
      foldJournals(connection, directory);
    },
    deleteTenantUsage(tenantId: string): void {
      // First what is on its way, or it would come back.
      foldJournals(connection, directory);
      deleteUsage.run(tenantId);
    },
    ping(): void {
      // The commit marker of the group is the write.
    },
  };
}

export type UsageOperations = ReturnType<typeof usageOperations>;
