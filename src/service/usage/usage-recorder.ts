/**
 * Adds the usage of a request to the ledger, exactly once. An operation that records its own usage claims the request first,
 * and `countRequest` then does nothing. A record that fails is not tried again, because the ledger may have it: counting
 * too little favours the customer, counting twice does not.
 */
import type { Catalog } from '../../catalog/contract.ts';
import type { UsageEvent } from '../../contracts/document-commits.ts';
import { ServiceError } from '../../errors.ts';
import { monthOf } from '../calendar-month.ts';
import type { RequestContext } from '../contract.ts';
import type { Limiter } from '../limits/limiter.ts';
import { tokenAllowanceExceeded } from '../limits/token-allowance.ts';

export interface UsageRecorderDeps {
  readonly catalog: Catalog;
  readonly limiter: Pick<Limiter, 'packedWindow'>;
  readonly nowMs: () => number;
}

type OperationUsage = Omit<UsageEvent, 'tenantId' | 'requests' | 'rateWindow'>;

export class UsageRecorder {
  readonly #deps: UsageRecorderDeps;

  constructor(deps: UsageRecorderDeps) {
    this.#deps = deps;
  }

  /** The usage of one answered request, with that of its operation. */
  event(tenantId: string, usage: OperationUsage): UsageEvent {
    return { ...usage, tenantId, requests: 1, rateWindow: this.#deps.limiter.packedWindow(tenantId) };
  }

  /** Records the usage of an operation with its request. Rejects when the allowance of tokens does not hold it. */
  async record(context: RequestContext, usage: OperationUsage): Promise<void> {
    const { tenant } = context;
    this.claim(context);
    try {
      await this.#deps.catalog.recordUsage(this.event(tenant.id, usage), tenant.limits.inputTokens);
    } catch (error) {
      const isExceeded = error instanceof ServiceError && error.code === 'usage_limit_exceeded';
      throw isExceeded ? tokenAllowanceExceeded(tenant, this.#deps.nowMs()) : error;
    }
  }

  /** Says that a transaction of the operation counts the request. */
  claim({ spent }: RequestContext): void {
    spent.isCharged = true;
  }

  /** Counts a request that no operation has claimed. */
  async countRequest(context: RequestContext): Promise<void> {
    if (context.spent.isCharged === true) return;
    this.claim(context);
    await this.countAnswer(context.tenant.id);
  }

  /** Charges a caller who left for what was run, unless an operation has claimed the request. */
  async countLeft(context: RequestContext): Promise<void> {
    if (context.spent.isCharged === true) return;
    const inputTokens = BigInt(context.spent.inputTokens);
    await this.record(context, { month: monthOf(this.#deps.nowMs()), inputTokens });
  }

  /** Counts an answer to a request that was not admitted. */
  async countAnswer(tenantId: string): Promise<void> {
    const { catalog, nowMs } = this.#deps;
    await catalog.recordUsage(this.event(tenantId, { month: monthOf(nowMs()) }));
  }
}
