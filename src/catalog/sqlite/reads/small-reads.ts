/**
 * Reads of small, hot tables (tenants, indexes) on the caller's own thread: a prepared point look-up costs some ten
 * microseconds, less than a message to a thread and back. They work with a catalog that an older program made.
 */
import { setImmediate } from 'node:timers/promises';
import type { IndexPlace, IndexRow, ModelVersionUse, Page, Tenant, TenantPlace } from '../../contract.ts';
import type { Connection } from '../connection.ts';
import { indexColumns, tenantColumns, toIndexRow, toTenant } from '../rows.ts';
import type { IndexColumns, TenantColumns } from '../rows.ts';
import { tenantById } from '../operations/statements.ts';

interface NameColumns extends Pick<IndexColumns, 'name'> {
  readonly index_key: number;
}

/** Indexes read before other work of the thread has its turn. */
const indexesInTurn = 32;

export function smallReads(catalog: Connection) {
  const tenant = tenantById(catalog);
  const tenants = catalog
    .prepare<[number, string, number], TenantColumns>(
      `SELECT ${tenantColumns} FROM tenants WHERE (created_at_ms, id) > (?, ?) ORDER BY created_at_ms, id LIMIT ?`,
    )
    .safeIntegers();
  const index = catalog.prepare<[string, string], IndexColumns>(
    `SELECT ${indexColumns} FROM indexes WHERE id = ? AND tenant_id = ?`,
  );
  // Names of one moment: between two rows that are read later, others may have swapped theirs.
  const indexNames = catalog.prepare<[string], NameColumns>(
    'SELECT index_key, name FROM indexes WHERE tenant_id = ? ORDER BY index_key',
  );
  const indexNamesOfPage = catalog.prepare<[string, number, string, number], NameColumns>(
    `SELECT index_key, name FROM indexes WHERE tenant_id = ? AND (created_at_ms, id) > (?, ?)
     ORDER BY created_at_ms, id LIMIT ?`,
  );
  const indexByKey = catalog.prepare<[number], IndexColumns>(
    `SELECT ${indexColumns} FROM indexes WHERE index_key = ?`,
  );
  const modelVersions = catalog.prepare<[], ModelVersionUse>(
    'SELECT model, model_version AS modelVersion, count(*) AS indexes FROM indexes GROUP BY model, model_version',
  );
  const indexIds = catalog.prepare<[], string>('SELECT id FROM indexes').pluck();

  const getTenant = (tenantId: string): Tenant | undefined => {
    const row = tenant.get(tenantId);
    return row === undefined ? undefined : toTenant(row);
  };

  return {
    getTenant,
    listTenants: (page?: Page<TenantPlace>): readonly Tenant[] => {
      const { createdAtMs, id } = page?.after ?? { createdAtMs: -1, id: '' };
      return tenants.all(createdAtMs, id, page?.limit ?? -1).map(toTenant);
    },

    getIndex: (tenantId: string, indexId: string): IndexRow | undefined => {
      const row = index.get(indexId, tenantId);
      return row === undefined ? undefined : toIndexRow(row);
    },

    /** In turns with other work of the thread: a thousand metadata schemas of 16 KiB take 200 ms. */
    listIndexes: async (tenantId: string, page?: Page<IndexPlace>): Promise<readonly IndexRow[]> => {
      const { createdAtMs, id } = page?.after ?? { createdAtMs: -1, id: '' };
      const found =
        page === undefined
          ? indexNames.all(tenantId)
          : indexNamesOfPage.all(tenantId, createdAtMs, id, page.limit);
      const rows: IndexRow[] = [];
      for (const [place, { index_key: indexKey, name }] of found.entries()) {
        if (place > 0 && place % indexesInTurn === 0) await setImmediate();
        const row = indexByKey.get(indexKey);
        // Deleted meanwhile.
        if (row !== undefined) rows.push(toIndexRow({ ...row, name }));
      }
      return rows.toSorted((one, other) => one.createdAtMs - other.createdAtMs);
    },
    listIndexIds: (): readonly string[] => indexIds.all(),
    listModelVersions: (): readonly ModelVersionUse[] => modelVersions.all(),
  };
}

export type SmallReads = ReturnType<typeof smallReads>;
