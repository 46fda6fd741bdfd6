/** Usage that waits to be written: one sum a tenant and month, oldest first, and no more of them than a bound. */
import type { UsageEvent } from '../../../document-commits.ts';

/** Each takes less than 1 KiB. */
export const usageSumsMax = 10_000;

export class UsageSums {
  readonly #sums = new Map<string, UsageEvent>();

  get size(): number {
    return this.#sums.size;
  }

  /** `false`: it would be one sum too many, and nothing of the event is kept. */
  add(event: UsageEvent): boolean {
    const key = keyOf(event);
    const sum = this.#sums.get(key);
    if (sum === undefined && this.#sums.size >= usageSumsMax) return false;
    this.#sums.set(key, sum === undefined ? event : added(sum, event));
    return true;
  }

  get(tenantId: string, month: string): UsageEvent | undefined {
    return this.#sums.get(keyOf({ tenantId, month }));
  }

  ofTenant(tenantId: string): readonly UsageEvent[] {
    return this.oldest(this.size).filter((sum) => sum.tenantId === tenantId);
  }

  oldest(count: number): readonly UsageEvent[] {
    return [...this.#sums.values()].slice(0, count);
  }

  remove(sums: readonly UsageEvent[]): void {
    for (const sum of sums) this.#sums.delete(keyOf(sum));
  }

  eraseTenant(tenantId: string): void {
    this.remove(this.ofTenant(tenantId));
  }
}

function keyOf({ tenantId, month }: Pick<UsageEvent, 'tenantId' | 'month'>): string {
  return `${month} ${tenantId}`;
}

function added(sum: UsageEvent, event: UsageEvent): UsageEvent {
  const add = (counter: 'requests' | 'documentUpserts' | 'searches' | 'scores'): number =>
    (sum[counter] ?? 0) + (event[counter] ?? 0);
  return {
    tenantId: event.tenantId,
    month: event.month,
    requests: add('requests'),
    inputTokens: (sum.inputTokens ?? 0n) + (event.inputTokens ?? 0n),
    documentUpserts: add('documentUpserts'),
    searches: add('searches'),
    scores: add('scores'),
    rateWindow: event.rateWindow ?? sum.rateWindow,
  };
}
