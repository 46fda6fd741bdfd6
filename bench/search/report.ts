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
  };
  readonly rows: readonly SearchRow[];
  readonly skipped: readonly { readonly variant: string; readonly reason: string }[];
}

export function renderTable({ environment, settings, rows, skipped }: SearchReport): string {
  const number = (value: number | null, digits: number): string =>
    value === null ? '' : value.toFixed(digits);
  const lines = rows.map((row) => [
    String(row.chunks),
    row.variant,
    [
      row.state,
      ...(row.selectivity === 1 ? [] : [`1/${row.selectivity}`]),
      ...(row.active_segment === 'empty' ? [] : [`active ${row.active_segment}`]),
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
  return [
    `${environment.cpu}, kernel ${environment.kernel}, ${environment.threads.join(', ')} threads, commit ${environment.commit}`,
    `${settings.embeddings}; ${settings.documents} documents, ${settings.queries} queries of ${settings.query_rows_mean.toFixed(1)} rows, top_k ${settings.top_k}`,
    '',
    ...markdownTable(header, lines),
    '',
    ...skipped.map(({ variant, reason }) => `${variant}: skipped (${reason})`),
    '',
  ].join('\n');
}
