/** The counters of a tenant in the current UTC month, its limits, and the rest of its allowances. */
import { monthBounds, monthOf } from '../calendar-month.ts';
import type { RequestContext, UsageSummary } from '../contract.ts';
import type { OperationDeps } from '../operation-deps.ts';

export async function usageSummary(deps: OperationDeps, { tenant }: RequestContext): Promise<UsageSummary> {
  const nowMs = deps.nowMs();
  const usage = await deps.catalog.usageTotals(tenant.id, monthOf(nowMs));
  const { startMs, endMs } = monthBounds(nowMs);
  const { limits } = tenant;
  const tokensLeft = limits.inputTokens - usage.inputTokens;
  return {
    periodStartMs: startMs,
    periodEndMs: endMs,
    usage,
    limits,
    remaining: {
      inputTokens: tokensLeft > 0n ? tokensLeft : 0n,
      documents: Math.max(0, limits.documents - usage.documents),
    },
    tenant: tenant.name,
  };
}
