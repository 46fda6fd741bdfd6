/** Every write of `catalog.db`, by name: what the writer thread can be asked for. */
import type { Connection } from '../connection.ts';
import { assertInvariant } from '../../../errors.ts';
import { documentOperations } from './document-operations.ts';
import { indexOperations } from './index-operations.ts';
import { purgeOperations } from './purge-operations.ts';
import { tenantOperations } from './tenant-operations.ts';

/** `actor`: who writes, for the audit log. */
export function catalogOperations(connection: Connection, actor: string) {
  const readNextId = connection.prepare<[], number>('SELECT next_id FROM catalog').pluck();
  const advanceNextId = connection.prepare('UPDATE catalog SET next_id = next_id + ?');
  const purge = purgeOperations(connection);
  return {
    ...tenantOperations(connection, actor),
    ...indexOperations(connection),
    ...documentOperations(connection),

    /** Reserves `count` identifiers for good and returns the first. */
    reserveIds(count: number): number {
      const first = readNextId.get();
      assertInvariant(
        first !== undefined && Number.isSafeInteger(first + count),
        'the catalog has identifiers left',
      );
      advanceNextId.run(count);
      return first;
    },

    /** Purges one batch of deleted rows; `true` while there may be more. */
    purgeStep(): boolean {
      return purge.isPending() && purge.step();
    },

    ping(): void {
      // The commit marker of the group is the write.
    },
  };
}

export type CatalogOperations = ReturnType<typeof catalogOperations>;
