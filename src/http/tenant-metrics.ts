/**
 * Metrics of the busiest tenants. A label value is a time series in Prometheus, so only `labelledMax` tenants have one, and
 * the rest are counted together as `other`. Every five minutes the tenants with the most requests get the labels. A tenant
 * that loses its label leaves its totals here, and goes on from them if it returns. So no counter goes back.
 */
import type { Metrics, Sample } from '../observation/metrics.ts';

const labelledMax = 100;
const periodMs = 300_000;
/** Totals of tenants without a label, the last that lost theirs. */
const keptMax = 10_000;
/** Tenants are named by UUIDs, so this is none of them. */
const other = 'other';

const latencyBoundsSeconds: readonly number[] = [0.01, 0.05, 0.25, 1, 5];

export interface TenantRequest {
  readonly tenantId: string;
  readonly status: number;
  readonly seconds: number;
  /** Absent for a request that was refused by a limit of the tenant. */
  readonly work?: { readonly inputTokens: number; readonly documents: number } | undefined;
}

class TenantTotals {
  readonly requests = new Map<string, number>();
  readonly latencies = Array.from(latencyBoundsSeconds, () => 0).concat(0);
  seconds = 0;
  inputTokens = 0;
  documents = 0;

  add({ status, seconds, work }: TenantRequest): void {
    const statusClass = `${Math.floor(status / 100)}xx`;
    this.requests.set(statusClass, (this.requests.get(statusClass) ?? 0) + 1);
    if (work === undefined) return;
    const found = latencyBoundsSeconds.findIndex((bound) => seconds <= bound);
    const place = found < 0 ? latencyBoundsSeconds.length : found;
    this.latencies[place] = (this.latencies[place] ?? 0) + 1;
    this.seconds += seconds;
    this.inputTokens += work.inputTokens;
    this.documents += work.documents;
  }
}

export class BusiestTenants {
  readonly #labelled = new Map<string, TenantTotals>();
  /** The tenant that lost its label longest ago comes first. */
  readonly #kept = new Map<string, TenantTotals>();
  readonly #rest = new TenantTotals();
  readonly #now: () => number;
  /** Requests of this period. */
  #seen = new Map<string, number>();
  #periodEnd: number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#periodEnd = now() + periodMs;
  }

  add(request: TenantRequest): void {
    const { tenantId } = request;
    if (this.#now() >= this.#periodEnd) this.#endPeriod();
    this.#seen.set(tenantId, (this.#seen.get(tenantId) ?? 0) + 1);
    if (this.#labelled.size < labelledMax) this.#label(tenantId);
    (this.#labelled.get(tenantId) ?? this.#rest).add(request);
  }

  entries(): readonly (readonly [tenant: string, totals: TenantTotals])[] {
    const rest = this.#rest.requests.size === 0 ? [] : [[other, this.#rest] as const];
    return [...this.#labelled, ...rest];
  }

  /** The tenant's own label, or that of all without one. */
  labelOf(tenantId: string): string {
    return this.#labelled.has(tenantId) ? tenantId : other;
  }

  #endPeriod(): void {
    this.#periodEnd = this.#now() + periodMs;
    const requestsOf = (tenantId: string): number => this.#seen.get(tenantId) ?? 0;
    // The sort is stable: of two tenants with as many requests, the one with a label keeps it.
    const busiest = [...new Set([...this.#labelled.keys(), ...this.#seen.keys()])]
      .toSorted((one, two) => requestsOf(two) - requestsOf(one))
      .slice(0, labelledMax);
    this.#seen = new Map();
    const stays = new Set(busiest);
    for (const tenantId of this.#labelled.keys()) if (!stays.has(tenantId)) this.#unlabel(tenantId);
    for (const tenantId of busiest) this.#label(tenantId);
  }

  #label(tenantId: string): void {
    if (this.#labelled.has(tenantId)) return;
    this.#labelled.set(tenantId, this.#kept.get(tenantId) ?? new TenantTotals());
    this.#kept.delete(tenantId);
  }

  #unlabel(tenantId: string): void {
    this.#kept.set(tenantId, this.#labelled.get(tenantId) ?? new TenantTotals());
    this.#labelled.delete(tenantId);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > keptMax && oldest !== undefined) this.#kept.delete(oldest);
  }
}

/** Memory of the engine by tenant. */
type MemoryOwners = () => readonly { readonly owner: string; readonly takenBytes: number }[];

/** Registers the metrics. The result is called once for each request of a tenant. */
export function registerTenantMetrics(
  metrics: Metrics,
  memoryOwners: MemoryOwners = () => [],
  tenants = new BusiestTenants(),
): (request: TenantRequest) => void {
  const counter = (name: string, help: string, pick: (totals: TenantTotals) => number): void =>
    metrics.registerCounter({ name, help, labelNames: ['tenant'] }, () =>
      tenants.entries().map(([tenant, totals]): Sample => ({ labels: { tenant }, value: pick(totals) })),
    );
  metrics.registerCounter(
    {
      name: 'tenant_requests_total',
      help: `Finished requests of the ${labelledMax} busiest tenants by id, and of the \`${other}\` ones together, by class of status (\`2xx\`). Includes those that a limit refused.`,
      labelNames: ['tenant', 'status'],
    },
    () =>
      tenants
        .entries()
        .flatMap(([tenant, { requests }]) =>
          [...requests].map(([status, value]): Sample => ({ labels: { tenant, status }, value })),
        ),
  );
  counter(
    'tenant_input_tokens_total',
    'Tokens that the encoder ran for a tenant.',
    (totals) => totals.inputTokens,
  );
  counter('tenant_documents_total', 'Documents that a tenant upserted.', (totals) => totals.documents);
  metrics.registerGauge(
    {
      name: 'tenant_memory_bytes',
      help: 'Memory that the engine has for the open indexes of a tenant.',
      labelNames: ['tenant'],
    },
    () => memorySamples(memoryOwners(), tenants),
  );
  metrics.registerHistogram(
    {
      name: 'tenant_request_duration_seconds',
      help: 'Time from the first header to the end of the answer, for admitted requests of a tenant.',
      labelNames: ['tenant'],
    },
    async () =>
      tenants.entries().map(([tenant, { latencies, seconds }]) => ({
        labels: { tenant },
        bounds: latencyBoundsSeconds,
        counts: latencies,
        sum: seconds,
      })),
  );
  return (request) => tenants.add(request);
}

function memorySamples(owners: ReturnType<MemoryOwners>, tenants: BusiestTenants): readonly Sample[] {
  const sums = new Map<string, number>();
  for (const { owner, takenBytes } of owners) {
    const label = tenants.labelOf(owner);
    sums.set(label, (sums.get(label) ?? 0) + takenBytes);
  }
  return [...sums].map(([tenant, value]) => ({ labels: { tenant }, value }));
}
