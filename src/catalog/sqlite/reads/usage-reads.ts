/**
 * Reads of usage on the caller's own thread. They are synchronous on purpose: `usageTotals` reads at the moment of the call, so
 * that no settled commit can slip between reading the ledger and reserving against it.
 */
import type { UsageDay, UsageTotals } from '../../contract.ts';
import type { Connection } from '../connection.ts';
import { selectRateWindowsSql, selectUsageDaysSql, selectUsageSql } from '../rows.ts';
import type { RateWindowColumns, UsageColumns, UsageDayColumns } from '../rows.ts';
import type { UsageLedger } from '../usage/usage-ledger.ts';

/** What was committed with documents, and what the ledger holds. */
export function usageReads(catalog: Connection, usage: Pick<UsageLedger, 'totals' | 'days' | 'rateWindows'>) {
  const documentsStored = catalog
    .prepare<[string], number>('SELECT documents_stored FROM tenants WHERE id = ?')
    .pluck();
  const committedUsage = catalog.prepare<[string, string], UsageColumns>(selectUsageSql).safeIntegers();
  const committedDays = catalog
    .prepare<[string, string, string], UsageDayColumns>(selectUsageDaysSql)
    .safeIntegers();
  const rateWindows = catalog.prepare<[string], RateWindowColumns>(selectRateWindowsSql);

  return {
    rateWindows: (month: string): readonly RateWindowColumns[] => [
      ...rateWindows.all(month),
      ...usage.rateWindows(month),
    ],

    usageTotals: (tenantId: string, month: string): UsageTotals => {
      const committed = committedUsage.get(tenantId, month);
      const rows = [...(committed === undefined ? [] : [committed]), ...usage.totals(tenantId, month)];
      return { ...sumOf(rows), documents: documentsStored.get(tenantId) ?? 0 };
    },

    usageDays: (tenantId: string, from: string, to: string): readonly UsageDay[] => {
      const rows = [...committedDays.all(tenantId, from, to), ...usage.days(tenantId, from, to)];
      return [...Map.groupBy(rows, ({ day }) => day)]
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([day, parts]) => ({ day, ...sumOf(parts) }));
    },
  };
}

function sumOf(rows: readonly UsageColumns[]): Omit<UsageTotals, 'documents'> {
  const sum = (column: keyof UsageColumns): bigint => rows.reduce((total, row) => total + row[column], 0n);
  return {
    inputTokens: sum('input_tokens'),
    requests: Number(sum('requests')),
    documentUpserts: Number(sum('document_upserts')),
    searches: Number(sum('searches')),
    scores: Number(sum('scores')),
  };
}
