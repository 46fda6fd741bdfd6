/**
 * Searches of the last hour by index and minute, in the memory of this process, for people who look at a dashboard. Only the
 * `indexesMax` indexes that were searched last are kept. Latencies are counted in buckets, so a quantile is within a tenth.
 */
import { LRUCache } from 'lru-cache';

export const activityMinutes = 60;
const indexesMax = 1_000;
const minuteMs = 60_000;
const firstBoundMs = 0.5;
const growth = 1.2;
/** The last bound is above the deadline of a search by default. */
const buckets = 64;

export interface SearchAnswer {
  readonly tenantId: string;
  readonly indexId: string;
  readonly status: number;
  readonly ms: number;
}

interface Counts {
  searches: number;
  errors: number;
  readonly latencies: Uint32Array;
}

export interface ActivityFigures {
  /** Answered requests, the errors among them. */
  readonly searches: number;
  readonly errors: number;
  /** Milliseconds, without errors; null = there is none. */
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
}

export interface IndexActivity {
  /** Oldest first. */
  readonly minutes: readonly ActivityFigures[];
  readonly hour: ActivityFigures;
}

type MaybeLater<Value> = Value | Promise<Value>;

/** The activity of the process, from any of its threads. */
export interface Activity {
  note(answer: SearchAnswer): void;
  fromMs(): MaybeLater<number>;
  indexesOf(tenantId: string): MaybeLater<readonly string[]>;
  of(tenantId: string, indexId: string): MaybeLater<IndexActivity>;
}

export class RecentActivity implements Activity {
  /** Tenant and index -> minute since the epoch -> counts. */
  readonly #kept = new LRUCache<string, Map<number, Counts>>({ max: indexesMax });
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /** An index that may not exist gets no place, so unknown ids cannot push indexes out. */
  note({ tenantId, indexId, status, ms }: SearchAnswer): void {
    const key = `${tenantId} ${indexId}`;
    const isRefusal = status >= 400 && status < 500;
    if (isRefusal && !this.#kept.has(key)) return;
    const minutes = this.#kept.get(key) ?? new Map<number, Counts>();
    this.#kept.set(key, minutes);
    const now = Math.floor(this.#nowMs() / minuteMs);
    for (const minute of minutes.keys()) if (minute <= now - activityMinutes) minutes.delete(minute);
    const counts = minutes.get(now) ?? noCounts();
    minutes.set(now, counts);
    counts.searches += 1;
    if (status >= 400) counts.errors += 1;
    else counts.latencies[bucketOf(ms)]! += 1;
  }

  /** The start of the first minute, in milliseconds since the epoch. */
  fromMs(): number {
    return (Math.floor(this.#nowMs() / minuteMs) - activityMinutes + 1) * minuteMs;
  }

  /** The tenant's indexes that were searched in the last hour. */
  indexesOf(tenantId: string): readonly string[] {
    const first = this.fromMs() / minuteMs;
    return [...this.#kept.entries()].flatMap(([key, minutes]) => {
      const [tenant, indexId = ''] = key.split(' ');
      return tenant === tenantId && [...minutes.keys()].some((minute) => minute >= first) ? [indexId] : [];
    });
  }

  of(tenantId: string, indexId: string): IndexActivity {
    const first = this.fromMs() / minuteMs;
    const kept = this.#kept.peek(`${tenantId} ${indexId}`);
    const counts = Array.from({ length: activityMinutes }, (_, at) => kept?.get(first + at) ?? noSearches);
    const hour = noCounts();
    for (const one of counts) add(hour, one);
    return { minutes: counts.map(figuresOf), hour: figuresOf(hour) };
  }
}

function noCounts(): Counts {
  return { searches: 0, errors: 0, latencies: new Uint32Array(buckets) };
}

const noSearches = noCounts();

function add(sum: Counts, one: Counts): void {
  if (one.searches === 0) return;
  sum.searches += one.searches;
  sum.errors += one.errors;
  for (const [at, count] of one.latencies.entries()) sum.latencies[at]! += count;
}

function figuresOf({ searches, errors, latencies }: Counts): ActivityFigures {
  const answered = searches - errors;
  return {
    searches,
    errors,
    p50_ms: quantile(latencies, answered, 0.5),
    p99_ms: quantile(latencies, answered, 0.99),
  };
}

function bucketOf(ms: number): number {
  const above = Math.ceil(Math.log(ms / firstBoundMs) / Math.log(growth));
  return Math.max(0, Math.min(buckets - 1, above));
}

/** The geometric middle of the bucket that holds it, in tenths. */
function quantile(latencies: Uint32Array, total: number, share: number): number | null {
  if (total === 0) return null;
  let left = Math.ceil(share * total);
  const bucket = latencies.findIndex((count) => (left -= count) <= 0);
  return Math.round(10 * firstBoundMs * growth ** (bucket - 0.5)) / 10;
}
