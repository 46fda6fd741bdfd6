/** Collects the times of the stages of one tenant's requests from the request log of a server. */
import { percentiles } from '../lib/statistics.ts';

/** Milliseconds, by stage. */
export type StageTimes = Readonly<Record<string, Readonly<Record<'p50' | 'p99', number>>>>;

type Collected = Map<string, number[]>;

export class StageLog {
  #tenantId: string | undefined;
  #into: Collected | undefined;

  watch(tenantId: string): void {
    this.#tenantId = tenantId;
  }

  empty(): Collected {
    return new Map();
  }

  /** From now on requests are collected there. */
  into(collected: Collected | undefined): void {
    this.#into = collected;
  }

  add(line: string): void {
    if (this.#into === undefined || !line.includes('"timings_ms"')) return;
    const { tenant_id, timings_ms, latency_ms } = JSON.parse(line) as {
      readonly tenant_id?: string;
      readonly timings_ms: Readonly<Record<string, number>>;
      readonly latency_ms: number;
    };
    if (tenant_id !== this.#tenantId) return;
    for (const [stage, ms] of [...Object.entries(timings_ms), ['total', latency_ms] as const]) {
      const times = this.#into.get(stage) ?? [];
      times.push(ms);
      this.#into.set(stage, times);
    }
  }

  medians(collected: Collected): StageTimes {
    return Object.fromEntries([...collected].map(([stage, times]) => [stage, percentiles(times, 50, 99)]));
  }
}
