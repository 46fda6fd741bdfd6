/**
 * What a request adds to the ledger, exactly once: an operation that records its own usage claims the
 * request first, and `countRequest` then leaves it alone. A record that fails half-way is not tried again:
 * counting too little favours the customer, counting twice does not.
 */
import type { Catalog, UsageEvent } from '../catalog/contract.ts';
import { monthOf } from './calendar-month.ts';
import type { RequestContext } from './contract.ts';

export class UsageRecorder {
  readonly #catalog: Catalog;
  readonly #nowMs: () => number;
  readonly #claimed = new WeakSet<RequestContext>();

  constructor(catalog: Catalog, nowMs: () => number) {
    this.#catalog = catalog;
    this.#nowMs = nowMs;
  }

  /** Records an operation together with its request. */
  async record(context: RequestContext, usage: Omit<UsageEvent, 'tenantId' | 'requests'>): Promise<void> {
    this.claim(context);
    await this.#catalog.recordUsage({ ...usage, tenantId: context.tenant.id, requests: 1 });
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

  /** Counts an answer to a request that was not admitted. */
  async countAnswer(tenantId: string): Promise<void> {
    await this.#catalog.recordUsage({ tenantId, month: monthOf(this.#nowMs()), requests: 1 });
  }
}
