/**
 * Reads of tenants and indexes, on the calling thread: these tables are small, and a prepared look-up costs some ten
 * microseconds, less than a message to a thread and back. They work with a catalog of an earlier release too.
 */
import { setImmediate } from 'node:timers/promises';
import type { IndexPlace, IndexRow, ModelVersionUse, Page, Tenant, TenantPlace } from '../../contract.ts';
import type { Connection } from '../connection.ts';
import { tenantColumns, toIndexRow, toTenant, type IndexColumns, type TenantColumns } from '../../rows.ts';

type NameColumns = Pick<IndexColumns, 'id' | 'name' | 'created_at_ms'> & { readonly index_key: number };

const beginning: IndexPlace = { createdAtMs: -1, id: '' };

/** After so many indexes other work of the thread has its turn. */
const indexesInTurn = 32;

export function smallReads(catalog: Connection) {
  return { ...tenantReads(catalog), ...indexReads(catalog) };
}

function tenantReads(catalog: Connection) {
  const tenant = catalog.prepare<[string], TenantColumns>(
    `SELECT ${tenantColumns} FROM tenants WHERE id = ?`,
  );
  const tenants = catalog.prepare<[number, string, number], TenantColumns>(
    `SELECT ${tenantColumns} FROM tenants WHERE (created_at_ms, id) > (?, ?) ORDER BY created_at_ms, id LIMIT ?`,
  );
  return {
    getTenant: (tenantId: string): Tenant | undefined => {
      const row = tenant.get(tenantId);
      return row && toTenant(row);
    },

    listTenants: (page?: Page<TenantPlace>): readonly Tenant[] => {
      const { createdAtMs, id } = page?.after ?? { createdAtMs: -1, id: '' };
      return tenants.all(createdAtMs, id, page?.limit ?? -1).map(toTenant);
    },
  };
}

function indexReads(catalog: Connection) {
  // The table of an earlier release lacks columns of this one.
  const index = catalog.prepare<[string, string], IndexColumns>(
    'SELECT * FROM indexes WHERE id = ? AND tenant_id = ?',
  );
  const idOfName = catalog
    .prepare<[string, string], string>('SELECT id FROM indexes WHERE tenant_id = ? AND name = ?')
    .pluck();
  // The names are read at one moment. The rows are read later, and two indexes may swap their names in between.
  const indexNames = catalog.prepare<[string], NameColumns>(
    'SELECT index_key, id, name, created_at_ms FROM indexes WHERE tenant_id = ? ORDER BY index_key',
  );
  const indexNamesOfPage = catalog.prepare<[string, number, string, number], NameColumns>(
    `SELECT index_key, id, name, created_at_ms FROM indexes WHERE tenant_id = ? AND (created_at_ms, id) > (?, ?)
     ORDER BY created_at_ms, id LIMIT ?`,
  );
  const indexByKey = catalog.prepare<[number], IndexColumns>('SELECT * FROM indexes WHERE index_key = ?');
  const modelVersions = catalog.prepare<[], ModelVersionUse>(
    `SELECT model, model_version AS modelVersion, count(*) AS indexes FROM indexes
     GROUP BY model, model_version ORDER BY indexes DESC, model, model_version`,
  );
  const indexIds = catalog.prepare<[], string>('SELECT id FROM indexes').pluck();

  /** Gives other work of the thread its turn: a thousand metadata schemas of 16 KiB take 200 ms. */
  const rowsOf = async (found: readonly NameColumns[]): Promise<IndexRow[]> => {
    const rows: IndexRow[] = [];
    for (const [place, { index_key: indexKey, name }] of found.entries()) {
      if (place > 0 && place % indexesInTurn === 0) await setImmediate();
      const row = indexByKey.get(indexKey);
      // A row that is missing was deleted meanwhile.
      if (row !== undefined) rows.push(toIndexRow({ ...row, name }));
    }
    return rows;
  };

  return {
    getIndex: (tenantId: string, indexId: string): IndexRow | undefined => {
      const row = index.get(indexId, tenantId);
      return row && toIndexRow(row);
    },

    findIndexId: (tenantId: string, name: string): string | undefined => idOfName.get(tenantId, name),

    listIndexes: async (tenantId: string, page?: Page<IndexPlace>): Promise<readonly IndexRow[]> => {
      if (page === undefined) {
        const rows = await rowsOf(indexNames.all(tenantId));
        return rows.toSorted((one, other) => one.createdAtMs - other.createdAtMs);
      }
      const rows: IndexRow[] = [];
      let after = page.after ?? beginning;
      // A page that is not full would end the list. So later indexes take the places of those that are deleted meanwhile.
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
