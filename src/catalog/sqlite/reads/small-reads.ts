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

interface NameColumns extends Pick<IndexColumns, 'id' | 'name' | 'created_at_ms'> {
  readonly index_key: number;
}

const beginning: IndexPlace = { createdAtMs: -1, id: '' };

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
    'SELECT index_key, id, name, created_at_ms FROM indexes WHERE tenant_id = ? ORDER BY index_key',
  );
  const indexNamesOfPage = catalog.prepare<[string, number, string, number], NameColumns>(
    `SELECT index_key, id, name, created_at_ms FROM indexes WHERE tenant_id = ? AND (created_at_ms, id) > (?, ?)
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

  /** In turns with other work of the thread: a thousand metadata schemas of 16 KiB take 200 ms. */
  const rowsOf = async (found: readonly NameColumns[]): Promise<IndexRow[]> => {
    const rows: IndexRow[] = [];
    for (const [place, { index_key: indexKey, name }] of found.entries()) {
      if (place > 0 && place % indexesInTurn === 0) await setImmediate();
      const row = indexByKey.get(indexKey);
      // Deleted meanwhile.
      if (row !== undefined) rows.push(toIndexRow({ ...row, name }));
    }
    return rows;
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

    listIndexes: async (tenantId: string, page?: Page<IndexPlace>): Promise<readonly IndexRow[]> => {
      if (page === undefined) {
        const rows = await rowsOf(indexNames.all(tenantId));
        return rows.toSorted((one, other) => one.createdAtMs - other.createdAtMs);
      }
      const rows: IndexRow[] = [];
      let after = page.after ?? beginning;
      // Others take the places of those that were deleted meanwhile: a page that is not full is the last one.
      for (;;) {
        const wanted = page.limit - rows.length;
        const found = indexNamesOfPage.all(tenantId, after.createdAtMs, after.id, wanted);
        rows.push(...(await rowsOf(found)));
        const last = found.at(-1);
        if (last === undefined || found.length < wanted || rows.length === page.limit) return rows;
        after = { createdAtMs: last.created_at_ms, id: last.id };
      }
    },
    listIndexIds: (): readonly string[] => indexIds.all(),
    listModelVersions: (): readonly ModelVersionUse[] => modelVersions.all(),
  };
}

export type SmallReads = ReturnType<typeof smallReads>;
