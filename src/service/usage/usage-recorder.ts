/**
 * What a request adds to the ledger, exactly once: an operation that records its own usage claims the
 * request first, and `countRequest` then leaves it alone. A record that fails half-way is not tried again:
 * counting too little favours the customer, counting twice does not.
 */
import type { Catalog } from '../../catalog/contract.ts';
import type { UsageEvent } from '../../document-commits.ts';
import { ServiceError } from '../../errors.ts';
import { monthOf } from '../calendar-month.ts';
import type { RequestContext } from '../contract.ts';
import type { Limiter } from '../limits/limiter.ts';
import { tokenAllowanceExceeded } from '../limits/token-allowance.ts';

export class UsageRecorder {
  readonly #catalog: Catalog;
  readonly #limiter: Pick<Limiter, 'packedWindow'>;
  readonly #nowMs: () => number;
  readonly #claimed = new WeakSet<RequestContext>();

  constructor(options: {
    readonly catalog: Catalog;
    readonly limiter: Pick<Limiter, 'packedWindow'>;
    readonly nowMs: () => number;
  }) {
    this.#catalog = options.catalog;
    this.#limiter = options.limiter;
    this.#nowMs = options.nowMs;
  }

  /** One answered request of a tenant, with what its operation used. */
  event(tenantId: string, usage: Omit<UsageEvent, 'tenantId' | 'requests' | 'rateWindow'>): UsageEvent {
    return { ...usage, tenantId, requests: 1, rateWindow: this.#limiter.packedWindow(tenantId) };
  }

  /** Records an operation together with its request, as far as the tenant's allowance of tokens holds it. */
  async record(
    context: RequestContext,
    usage: Omit<UsageEvent, 'tenantId' | 'requests' | 'rateWindow'>,
  ): Promise<void> {
    const { id, limits } = context.tenant;
    this.claim(context);
    try {
      await this.#catalog.recordUsage(this.event(id, usage), limits.inputTokens);
    } catch (error) {
      const isExceeded = error instanceof ServiceError && error.code === 'usage_limit_exceeded';
      throw isExceeded ? tokenAllowanceExceeded(this.#nowMs()) : error;
    }
  }

  /** The request is counted by a transaction of the operation's own. */
  claim(context: RequestContext): void {
    this.#claimed.add(context);
  }

  /** Counts a request that no operation has claimed. */
  async countRequest(context: RequestContext): Promise<void> {
    if (this.#claimed.has(context)) return;
    this.claim(context);
    await this.countAnswer(context.tenant.id);
  }

  /** Charges what was run for a caller who left, unless an operation has claimed the request. */
  async countLeft(context: RequestContext): Promise<void> {
    if (this.#claimed.has(context)) return;
    await this.record(context, {
      month: monthOf(this.#nowMs()),
      inputTokens: BigInt(context.spent.inputTokens),
    });
  }

  /** Counts an answer to a request that was not admitted. */
  async countAnswer(tenantId: string): Promise<void> {
    await this.#catalog.recordUsage(this.event(tenantId, { month: monthOf(this.#nowMs()) }));
  }
}
