/** Statements on usage, which is stored in the same tables of both databases. */
import { usageColumns, wasUsed, type UsagePart } from '../../rows.ts';
import type { Connection } from '../connection.ts';

export interface RateWindow {
  readonly tenantId: string;
  readonly packed: Uint8Array;
}

export type UsageDayPart = UsagePart & { readonly day: string };

/** Takes the tenant, then `usageValues`. */
export const addUsageSql = `
  INSERT INTO usage_months
    (tenant_id, month, requests, input_tokens, document_upserts, searches, scores, rate_window)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (tenant_id, month) DO UPDATE SET
    requests = requests + excluded.requests,
    input_tokens = input_tokens + excluded.input_tokens,
    document_upserts = document_upserts + excluded.document_upserts,
    searches = searches + excluded.searches,
    scores = scores + excluded.scores,
    rate_window = coalesce(excluded.rate_window, rate_window)`;

/** The reads of usage. `totals` takes tenant and month, `days` takes tenant, first and last day. */
export function usageStatements(connection: Connection) {
  return {
    totals: connection.prepare<[string, string], UsagePart>(
      `SELECT ${usageColumns} FROM usage_months WHERE tenant_id = ? AND month = ?`,
    ),
    days: connection.prepare<[string, string, string], UsageDayPart>(
      `SELECT day, ${usageColumns} FROM usage_days WHERE tenant_id = ? AND day BETWEEN ? AND ? AND ${wasUsed}`,
    ),
    rateWindows: connection.prepare<[string], RateWindow>(
      `SELECT tenant_id AS tenantId, rate_window AS packed FROM usage_months
       WHERE month >= ? AND rate_window IS NOT NULL`,
    ),
  };
}
