/**
 * Reads of small, hot tables (tenants, keys, indexes, usage) on the caller's own thread: a prepared
 * point look-up costs some ten microseconds, less than a message to a thread and back. They are
 * synchronous on purpose: `usageTotals` reads at the moment of the call, so that no settled commit can
 * slip between reading the ledger and reserving against it.
 */
import { setImmediate } from 'node:timers/promises';
import type {
  ApiKey,
  IndexPlace,
  IndexRow,
  KeyRecord,
  ModelVersionUse,
  Page,
  Tenant,
  UsageTotals,
} from '../../contract.ts';
import type { Connection } from '../connection.ts';
import {
  indexColumns,
  keyColumns,
  tenantColumns,
  toApiKey,
  toIndexRow,
  toTenant,
  selectRateWindowsSql,
  selectUsageSql,
} from '../rows.ts';
import type { IndexColumns, KeyColumns, RateWindowColumns, TenantColumns, UsageColumns } from '../rows.ts';
import { tenantById } from '../operations/statements.ts';
import type { UsageLedger } from '../usage/usage-ledger.ts';

interface KeyRecordColumns extends TenantColumns, KeyColumns {
  readonly hash: Uint8Array;
}

interface NameColumns extends Pick<IndexColumns, 'name'> {
  readonly index_key: number;
}

/** Indexes read before other work of the thread has its turn. */
const indexesInTurn = 32;

export function smallReads(catalog: Connection) {
  const tenant = tenantById(catalog);
  const tenants = catalog
    .prepare<[], TenantColumns>(`SELECT ${tenantColumns} FROM tenants ORDER BY created_at_ms, id`)
    .safeIntegers();
  const keys = catalog.prepare<[string], KeyColumns>(
    `SELECT ${keyColumns} FROM api_keys WHERE tenant_id = ? ORDER BY created_at_ms, id`,
  );
  const keyRecord = catalog
    .prepare<[string], KeyRecordColumns>(
      `SELECT ${keyColumns}, api_keys.hash, ${tenantColumns}
       FROM api_keys JOIN tenants ON tenants.id = api_keys.tenant_id WHERE api_keys.id = ?`,
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
    listTenants: (): readonly Tenant[] => tenants.all().map(toTenant),
    listKeys: (tenantId: string): readonly ApiKey[] => keys.all(tenantId).map(toApiKey),

    findKey: (keyId: string): KeyRecord | undefined => {
      const row = keyRecord.get(keyId);
      return row === undefined ? undefined : { key: toApiKey(row), hash: row.hash, tenant: toTenant(row) };
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

/** What was committed with documents, and what the ledger holds. */
export function usageReads(catalog: Connection, usage: Pick<UsageLedger, 'totals' | 'rateWindows'>) {
  const documentsStored = catalog
    .prepare<[string], number>('SELECT documents_stored FROM tenants WHERE id = ?')
    .pluck();
  const committedUsage = catalog.prepare<[string, string], UsageColumns>(selectUsageSql).safeIntegers();
  const rateWindows = catalog.prepare<[string], RateWindowColumns>(selectRateWindowsSql);

  return {
    rateWindows: (month: string): readonly RateWindowColumns[] => [
      ...rateWindows.all(month),
      ...usage.rateWindows(month),
    ],

    usageTotals: (tenantId: string, month: string): UsageTotals => {
      const rows = [committedUsage.get(tenantId, month), ...usage.totals(tenantId, month)];
      const sum = (column: keyof UsageColumns): bigint =>
        rows.reduce((total, row) => total + (row?.[column] ?? 0n), 0n);
      return {
        inputTokens: sum('input_tokens'),
        requests: Number(sum('requests')),
        documentUpserts: Number(sum('document_upserts')),
        searches: Number(sum('searches')),
        scores: Number(sum('scores')),
        documents: documentsStored.get(tenantId) ?? 0,
      };
    },
  };
}

export type SmallReads = ReturnType<typeof smallReads> & ReturnType<typeof usageReads>;
