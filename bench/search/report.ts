/** The report of the search benchmark, as JSON and as a table. */
import { markdownTable } from '../lib/table.ts';
import type { Environment } from '../lib/environment.ts';
import type { Measured } from './measure.ts';

export interface SearchRow extends Measured {
  readonly chunks: number;
  readonly token_vectors: number;
  readonly variant: string;
  readonly state: 'static' | 'churned' | 'filtered';
  readonly active_segment: 'empty' | 'half' | 'full';
  /** One document in so many matches the filter; 1 = no filter. */
  readonly selectivity: number;
  /** Query tokens with the weights the model gives them, or all of length 1. */
  readonly queries: 'weighted' | 'unit';
  /** Chunks scored exactly at most; null where the variant has no such number. */
  readonly candidate_k: number | null;
  /** Disk beyond the token vectors and their scales, record headers and filter terms included. */
  readonly derived_bytes_per_chunk: number | null;
  readonly disk_bytes_per_chunk: number | null;
  /** Memory that the engine counts for the index, without mapped files. */
  readonly memory_bytes_per_chunk: number | null;
  readonly build_s: number | null;
  /** Mapping the sealed segments and loading the lifespans of their documents. */
  readonly open_s: number | null;
  readonly settings: string;
}

export interface EqualRecall {
  /** Our throughput divided by theirs. Where they never reach our recall, the true ratio is higher. */
  readonly value: number;
  readonly ours: Operating;
  readonly theirs: Operating;
  readonly reached: boolean;
}

export interface Operating {
  readonly settings: string;
  readonly recall_at_10: number;
  readonly qps: number;
}

export interface SearchReport {
  readonly environment: Environment;
  readonly settings: {
    readonly embeddings: string;
    readonly dim: number;
    readonly documents: number;
    readonly queries: number;
    readonly query_rows_mean: number;
    readonly top_k: number;
    readonly seed: number;
    readonly peers: Readonly<Record<string, string>>;
  };
  readonly rows: readonly SearchRow[];
  readonly skipped: readonly { readonly variant: string; readonly reason: string }[];
  readonly ratios: { readonly lancedb_qps_at_equal_recall: number | null };
  readonly ratio_details: {
    readonly lancedb_qps_at_equal_recall: EqualRecall | { readonly value: null; readonly reason: string };
  };
}

/** How much lower a recall may be and still count as equal. */
const recallTolerance = 0.005;

/**
 * Our throughput at `candidateK`, divided by the best throughput of those settings of a peer whose recall@10 is at most the
 * tolerance lower. If none is that good, its setting with the highest recall counts, and `reached` is false.
 */
export function qpsAtEqualRecall(
  rows: readonly SearchRow[],
  peer: string,
  candidateK: number,
): SearchReport['ratio_details']['lancedb_qps_at_equal_recall'] {
  const unit = rows.filter((row) => row.queries === 'unit' && row.state === 'static');
  const ours = unit.find((row) => row.variant === 'maxsimd' && row.candidate_k === candidateK);
  const theirs = unit.filter((row) => row.variant === peer);
  if (ours === undefined || theirs.length === 0) return { value: null, reason: `${peer} was not run` };
  const equal = theirs.filter((row) => row.recall_at_10 >= ours.recall_at_10 - recallTolerance);
  const best =
    equal.toSorted((a, b) => b.qps - a.qps)[0] ??
    theirs.toSorted((a, b) => b.recall_at_10 - a.recall_at_10 || b.qps - a.qps)[0]!;
  return {
    value: ours.qps / best.qps,
    ours: operatingOf(ours),
    theirs: operatingOf(best),
    reached: equal.length > 0,
  };
}

function operatingOf({ settings, recall_at_10, qps }: SearchRow): Operating {
  return { settings, recall_at_10, qps };
}

export function renderTable({ environment, settings, rows, skipped, ratio_details }: SearchReport): string {
  const number = (value: number | null, digits: number): string =>
    value === null ? '' : value.toFixed(digits);
  const lines = rows.map((row) => [
    String(row.chunks),
    row.variant,
    [
      row.state,
      ...(row.selectivity === 1 ? [] : [`1/${row.selectivity}`]),
      ...(row.active_segment === 'empty' ? [] : [`active ${row.active_segment}`]),
      ...(row.queries === 'unit' ? ['unit queries'] : []),
    ].join(', '),
    number(row.candidate_k, 0),
    number(row.recall_at_10, 4),
    number(row.recall_at_100, 4),
    `${number(row.p50_ms, 2)} / ${number(row.p95_ms, 2)} / ${number(row.p99_ms, 2)}`,
    `${number(row.qps, 1)} (${row.clients})`,
    number(row.derived_bytes_per_chunk, 0),
    number(row.memory_bytes_per_chunk, 0),
    number(row.disk_bytes_per_chunk, 0),
    number(row.build_s, 1),
    row.settings,
  ]);
  const header = [
    'chunks',
    'variant',
    'state',
    'candidate_k',
    'recall@10',
    'recall@100',
    'p50 / p95 / p99 ms',
    'searches/s (in flight)',
    'derived B/chunk',
    'memory B/chunk',
    'disk B/chunk',
    'build s',
    'settings',
  ];
  const ratio = ratio_details.lancedb_qps_at_equal_recall;
  return [
    `${environment.cpu}, kernel ${environment.kernel}, ${environment.threads.join(', ')} threads, commit ${environment.commit}`,
    `${settings.embeddings}; ${settings.documents} documents, ${settings.queries} queries of ${settings.query_rows_mean.toFixed(1)} rows, top_k ${settings.top_k}`,
    '',
    ...markdownTable(header, lines),
    '',
    ...skipped.map(({ variant, reason }) => `${variant}: skipped (${reason})`),
    ratio.value === null
      ? `lancedb_qps_at_equal_recall: null (${ratio.reason})`
      : `lancedb_qps_at_equal_recall: ${ratio.reached ? '' : 'at least '}${ratio.value.toFixed(1)}: ${ratio.ours.qps.toFixed(1)}/s at ${ratio.ours.recall_at_10.toFixed(4)} (${ratio.ours.settings}) against ${ratio.theirs.qps.toFixed(1)}/s at ${ratio.theirs.recall_at_10.toFixed(4)} (${ratio.theirs.settings})`,
    '',
  ].join('\n');
}
