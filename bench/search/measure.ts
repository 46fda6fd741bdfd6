/** Recall, latency and throughput of anything that answers queries with documents, best first. */
import { mean, quantile } from '../lib/statistics.ts';
import type { Query } from './corpus.ts';

/** Documents by their best chunk among those returned, best first. */
export type Ranking = readonly number[];
export type Searcher = (query: Query) => Promise<Ranking>;

export interface Effort {
  /** Searches of one client. */
  readonly searches: number;
  /** A row stops measuring latency or throughput after so long, when it has met every query once. */
  readonly budgetMs: number;
  /** Numbers of searches kept in flight, of which the fastest counts. */
  readonly clients: readonly number[];
}

export interface Measured {
  readonly recall_at_10: number;
  readonly recall_at_100: number;
  readonly p50_ms: number;
  readonly p95_ms: number;
  readonly p99_ms: number;
  /** Searches that the latencies are of. */
  readonly searches: number;
  readonly qps: number;
  /** Searches in flight at that rate. */
  readonly clients: number;
}

/** Every query once: answers, and a warm-up. */
export async function rankings(search: Searcher, queries: readonly Query[]): Promise<readonly Ranking[]> {
  const answers: Ranking[] = [];
  for (const query of queries) answers.push(await search(query));
  return answers;
}

export async function measure(
  search: Searcher,
  queries: readonly Query[],
  truth: readonly Ranking[],
  effort: Effort,
): Promise<Measured> {
  const found = await rankings(search, queries);
  const times = await latencies(search, queries, effort);
  const saturated = await saturation(search, queries, effort);
  return {
    recall_at_10: recall(truth, found, 10),
    recall_at_100: recall(truth, found, 100),
    p50_ms: quantile(times, 0.5),
    p95_ms: quantile(times, 0.95),
    p99_ms: quantile(times, 0.99),
    searches: times.length,
    ...saturated,
  };
}

/** Mean share of the first `top` documents of the truth among the first `top` found, over queries that match anything. */
export function recall(truth: readonly Ranking[], found: readonly Ranking[], top: number): number {
  const shares = truth.flatMap((wanted, query) => {
    const first = wanted.slice(0, top);
    const got = new Set(found[query]?.slice(0, top));
    return first.length === 0 ? [] : [first.filter((document) => got.has(document)).length / first.length];
  });
  return mean(shares);
}

async function latencies(
  search: Searcher,
  queries: readonly Query[],
  { searches, budgetMs }: Effort,
): Promise<readonly number[]> {
  const times: number[] = [];
  const endAt = performance.now() + budgetMs;
  while (times.length < searches && (times.length < queries.length || performance.now() < endAt)) {
    const startedAt = performance.now();
    await search(queries[times.length % queries.length]!);
    times.push(performance.now() - startedAt);
  }
  return times;
}

async function saturation(
  search: Searcher,
  queries: readonly Query[],
  { searches, budgetMs, clients }: Effort,
): Promise<{ readonly qps: number; readonly clients: number }> {
  let best = { qps: 0, clients: 0 };
  for (const inFlight of clients) {
    const endAt = performance.now() + budgetMs / clients.length;
    const startedAt = performance.now();
    let asked = 0;
    const client = async (): Promise<void> => {
      while (asked < searches && (asked < queries.length || performance.now() < endAt)) {
        await search(queries[asked++ % queries.length]!);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, client));
    const qps = (asked * 1000) / (performance.now() - startedAt);
    if (qps > best.qps) best = { qps, clients: inFlight };
  }
  return best;
}
