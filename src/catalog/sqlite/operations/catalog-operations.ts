/** Every write of `catalog.db`, by name. The writer thread runs them, each inside a transaction. */
import type { Connection } from '../connection.ts';
import { assertInvariant } from '../../../errors.ts';
import { documentOperations } from './document-operations.ts';
import { indexOperations } from './index-operations.ts';
import { keyOperations } from './key-operations.ts';
import { purgeOperations } from './purge-operations.ts';
import { segmentOperations } from './segment-operations.ts';
import { tenantOperations } from './tenant-operations.ts';

export function catalogOperations(connection: Connection) {
  const readNextId = connection.prepare<[], number>('SELECT next_id FROM catalog').pluck();
  const advanceNextId = connection.prepare('UPDATE catalog SET next_id = next_id + ?');
  const purge = purgeOperations(connection);
  return {
    ...tenantOperations(connection),
    ...keyOperations(connection),
    ...indexOperations(connection),
    ...segmentOperations(connection),
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
    purgeStep: (): boolean => purge.isPending() && purge.step(),

    ping(): void {
      // Nothing: the commit marker of the group is the write.
    },
  };
}

export type CatalogOperations = ReturnType<typeof catalogOperations>;
