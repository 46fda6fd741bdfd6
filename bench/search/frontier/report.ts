/** The frontier as a table: every point, and what each side needs for each recall. */
import { markdownTable } from '../../lib/table.ts';
import type { FrontierReport } from './bench.ts';
import type { Point } from './times.ts';

/** Recall@10 that a side is to reach, as cheaply as it can. */
const levels = [0.65, 0.8, 0.9, 0.95, 0.98, 0.99] as const;

export function renderFrontier({ environment, queries, rounds, corpora }: FrontierReport): string {
  const lines = [
    `${environment.cpu}, ${environment.cores} cores, kernels ${environment.kernel}, commit ${environment.commit}; ${queries} queries, the least of ${rounds} rounds each`,
    '',
  ];
  for (const { embeddings, chunks, tokenVectors, points, skipped } of corpora) {
    lines.push(
      `${embeddings}; ${chunks} chunks, ${tokenVectors} token vectors, ${(tokenVectors / chunks).toFixed(0)} a chunk`,
      '',
      ...markdownTable(
        [
          'state',
          'side',
          'kernel',
          'threads',
          'settings',
          'bytes a token',
          'recall@10',
          'recall@10, unit rows',
          'recall@10, own rows',
          'recall@100',
          'p50 / p99 ms',
          'choosing + exact ms',
        ],
        points.map(rowOf),
      ),
      '',
      ...markdownTable(
        ['side', 'kernel', 'threads', ...levels.map((level) => `p50 ms at ${level}`)],
        frontiers(points),
      ),
      '',
      ...skipped,
    );
  }
  return `${lines.join('\n')}\n`;
}

function rowOf(point: Point): readonly string[] {
  const stages =
    point.candidates_ms === null || point.exact_ms === null
      ? ''
      : `${point.candidates_ms.toFixed(2)} + ${point.exact_ms.toFixed(2)}`;
  return [
    point.state,
    point.variant,
    point.kernel,
    String(point.threads),
    point.settings,
    point.bytes_a_token?.toFixed(1) ?? '',
    point.recall_at_10.toFixed(4),
    point.unit_recall_at_10?.toFixed(4) ?? '',
    point.scan_recall_at_10?.toFixed(4) ?? '',
    point.recall_at_100.toFixed(4),
    `${point.p50_ms.toFixed(2)} / ${point.p99_ms.toFixed(2)}`,
    stages,
  ];
}

/**
 * The least median of each side whose recall@10 reaches a level, in the static state. Of its recalls by the stored rows and by
 * unit rows the higher one counts: engines that use the cosine rank by unit rows.
 */
export function frontiers(points: readonly Point[]): readonly (readonly string[])[] {
  const sides = Map.groupBy(
    points.filter(({ state }) => state === 'static'),
    ({ variant, kernel, threads }) => [variant, kernel, String(threads)].join('\n'),
  );
  return [...sides].map(([side, of]) => [
    ...side.split('\n'),
    ...levels.map((level) => {
      const reaching = of.filter(
        ({ recall_at_10, unit_recall_at_10 }) => Math.max(recall_at_10, unit_recall_at_10 ?? 0) >= level,
      );
      return reaching.length === 0 ? 'never' : Math.min(...reaching.map(({ p50_ms }) => p50_ms)).toFixed(2);
    }),
  ]);
}
