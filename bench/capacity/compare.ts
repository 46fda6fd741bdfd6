/** Two capacity reports side by side. */
import { markdownTable } from '../lib/table.ts';
import { formatNumber as format, type CapacityReport, type StepReport } from './report.ts';

/** Capacity of both, and latency at the rates that both measured. */
export function compareReports(a: CapacityReport, b: CapacityReport): string {
  const lines = [describe('A', a), describe('B', b)];
  if (a.capacity_per_second !== null && b.capacity_per_second !== null) {
    lines.push(`B / A: ${(b.capacity_per_second / a.capacity_per_second).toFixed(3)}`);
  }
  const differing = (['mix', 'p99_ms', 'documents', 'texts', 'model'] as const).filter(
    (name) => JSON.stringify(a.settings[name]) !== JSON.stringify(b.settings[name]),
  );
  if (differing.length > 0) {
    lines.push(`The settings differ (${differing.join(', ')}): the figures do not compare directly.`);
  }
  const header = ['rate/s', 'A p50 ms', 'B p50 ms', 'A p99 ms', 'B p99 ms'];
  const rows = a.rows.flatMap((row) => {
    const other = b.rows.find((candidate) => candidate.rate_per_second === row.rate_per_second);
    if (other === undefined) return [];
    const cells = [latency(row, 'p50'), latency(other, 'p50'), latency(row, 'p99'), latency(other, 'p99')];
    return [[format(row.rate_per_second), ...cells]];
  });
  return `${[...lines, '', ...markdownTable(header, rows)].join('\n')}\n`;
}

function describe(name: string, { environment, settings, verdict, ...report }: CapacityReport): string {
  const capacity =
    report.capacity_per_second === null ? 'none' : `${format(report.capacity_per_second)} requests/s`;
  const cut = report.interrupted ? ', interrupted' : '';
  return `${name}: ${environment.cpu}, ${environment.cores} cores, commit ${environment.commit}: ${capacity} at p99 <= ${settings.p99_ms} ms (${verdict.resource}${cut})`;
}

function latency(row: StepReport, percentile: 'p50' | 'p99'): string {
  return format(row.latency_ms?.[percentile]);
}
