/**
 * Reads of small, hot tables (tenants, keys, indexes, usage) on the caller's own thread: a prepared
 * point look-up costs some ten microseconds, less than a message to a thread and back. They are
 * synchronous on purpose: `usageTotals` reads at the moment of the call, so that no settled commit can
 * slip between reading the ledger and reserving against it.
 */
import type { ApiKey, IndexRow, KeyRecord, Tenant, UsageTotals } from '../contract.ts';
import type { Connection } from './connection.ts';
import {
  indexColumns,
  keyColumns,
  tenantColumns,
  toApiKey,
  toIndexRow,
  toTenant,
  usageColumns,
} from './rows.ts';
import type { IndexColumns, KeyColumns, TenantColumns, UsageColumns } from './rows.ts';
import { foldedBytesByName, tenantById } from './statements.ts';
import { OpenJournals } from './usage-journal.ts';

interface KeyRecordColumns extends TenantColumns, KeyColumns {
  readonly hash: Uint8Array;
}

const selectUsage = `SELECT requests, input_tokens, document_upserts, searches, scores
  FROM usage_months WHERE tenant_id = ? AND month = ?`;

/** `directory`: with the journals of usage that is on its way into `usage`. */
export function smallReads(catalog: Connection, usage: Connection, directory: string) {
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
  const indexes = catalog.prepare<[string], IndexColumns>(
    `SELECT ${indexColumns} FROM indexes WHERE tenant_id = ? ORDER BY created_at_ms, index_key`,
  );
  const indexIds = catalog.prepare<[], string>('SELECT id FROM indexes').pluck();
  const documentsStored = catalog
    .prepare<[string], number>('SELECT documents_stored FROM tenants WHERE id = ?')
    .pluck();
  const committedUsage = catalog.prepare<[string, string], UsageColumns>(selectUsage).safeIntegers();
  const foldedBytes = foldedBytesByName(usage);
  const otherUsage = usage.prepare<[string, string], UsageColumns>(selectUsage).safeIntegers();
  const usageTenants = usage.prepare<[], string>('SELECT DISTINCT tenant_id FROM usage_months').pluck();

  /** From one snapshot of the database and files that were open before it: what is folded meanwhile counts once. */
  const recordedUsage = (tenantId: string, month: string): readonly (UsageColumns | undefined)[] => {
    const open = new OpenJournals(directory);
    try {
      return usage.transaction(() => [
        otherUsage.get(tenantId, month),
        ...[...open.unfolded((name) => foldedBytes.get(name) ?? 0)]
          .flatMap(({ events }) => events)
          .filter((event) => event.tenantId === tenantId && event.month === month)
          .map(usageColumns),
      ])();
    } finally {
      open.close();
    }
  };

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

    listIndexes: (tenantId: string): readonly IndexRow[] => indexes.all(tenantId).map(toIndexRow),
    listIndexIds: (): readonly string[] => indexIds.all(),

    usageTotals: (tenantId: string, month: string): UsageTotals => {
      const rows = [committedUsage.get(tenantId, month), ...recordedUsage(tenantId, month)];
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

    /** Tenants that left usage behind when they were erased (a crash between the two databases). */
    erasedTenantsWithUsage: (): readonly string[] => {
      // In this order: a tenant created in between is not mistaken for an erased one.
      const candidates = usageTenants.all();
      return candidates.filter((tenantId) => getTenant(tenantId) === undefined);
    },
  };
}

export type SmallReads = ReturnType<typeof smallReads>;
