/**
 * Reads of usage, on the calling thread. They are synchronous on purpose: the service reserves tokens against the totals, and
 * no commit may settle between the two.
 */
import type { UsageDay, UsageTotals } from '../../contract.ts';
import { sumOfUsage } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { usageStatements, type RateWindow } from '../usage/usage-statements.ts';
import type { UsageLedger } from '../usage/usage-ledger.ts';

/** Adds up the usage that was committed with documents and the usage in the ledger. */
export function usageReads(catalog: Connection, usage: Pick<UsageLedger, 'totals' | 'days' | 'rateWindows'>) {
  const documentsStored = catalog
    .prepare<[string], number>('SELECT documents_stored FROM tenants WHERE id = ?')
    .pluck();
  const committed = usageStatements(catalog);

  return {
    rateWindows: (month: string): readonly RateWindow[] => [
      ...committed.rateWindows.all(month),
      ...usage.rateWindows(month),
    ],

    usageTotals: (tenantId: string, month: string): UsageTotals => ({
      ...sumOfUsage([...committed.totals.all(tenantId, month), ...usage.totals(tenantId, month)]),
      documents: documentsStored.get(tenantId) ?? 0,
    }),

    usageDays: (tenantId: string, from: string, to: string): readonly UsageDay[] => {
      const parts = [...committed.days.all(tenantId, from, to), ...usage.days(tenantId, from, to)];
      return [...Map.groupBy(parts, ({ day }) => day)]
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([day, partsOfDay]) => ({ day, ...sumOfUsage(partsOfDay) }));
    },
  };
}
