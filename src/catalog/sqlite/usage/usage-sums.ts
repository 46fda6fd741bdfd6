/** Usage that waits to be written: a sum for each tenant and month, oldest first, up to a bound. */
import type { UsageEvent } from '../../../contracts/document-commits.ts';
import { sumOfUsage } from '../../rows.ts';

/** A sum takes less than 1 KiB. */
export const usageSumsMax = 10_000;

export class UsageSums {
  readonly #sums = new Map<string, UsageEvent>();

  get size(): number {
    return this.#sums.size;
  }

  /** Returns false, and keeps nothing, when that would be one sum too many. */
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
  const { tenantId, month, rateWindow = sum.rateWindow } = event;
  return { tenantId, month, ...sumOfUsage([sum, event]), rateWindow };
}
