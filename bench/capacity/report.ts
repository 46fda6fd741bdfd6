/** The shape of a capacity report, and its one self-contained HTML page (inline SVG, no scripts, no outside hosts). */
import type { Environment } from '../environment.ts';
import type { StepResources } from './observe.ts';
import type { Mix, Operation } from './schedule.ts';
import type { Verdict } from './verdict.ts';

export interface StepReport {
  readonly rate_per_second: number;
  readonly requests: number;
  readonly failed: number;
  readonly answered_per_second: number;
  /** From the moment a request was due. */
  readonly latency_ms: Readonly<Record<'p50' | 'p90' | 'p99' | 'max', number>>;
  readonly by_operation: Readonly<
    Partial<Record<Operation, { readonly requests: number; readonly p50: number; readonly p99: number }>>
  >;
  readonly met_target: boolean;
  readonly send_lag_ms_max: number;
  readonly resources: StepResources;
}

export interface CapacityReport {
  readonly environment: Environment;
  readonly settings: {
    readonly mix: Mix;
    readonly p99_ms: number;
    readonly step_seconds: number;
    readonly documents: number;
    readonly model: string;
    readonly seed: number;
  };
  readonly rows: readonly StepReport[];
  /** Highest rate that met the target; null when none did. */
  readonly capacity_per_second: number | null;
  readonly verdict: Verdict;
  /** True when the run was cut short: the rows are those measured until then. */
  readonly interrupted: boolean;
  readonly ratios: Readonly<Record<string, number | null>>;
}

export function renderHtml(report: CapacityReport): string {
  const rows = report.rows.toSorted((a, b) => a.rate_per_second - b.rate_per_second);
  const rates = rows.map((row) => row.rate_per_second);
  const stages = [...new Set(rows.flatMap((row) => Object.keys(row.resources.stagesMs)))].filter((name) =>
    /(encode|engine|append|commit|usage|resolve|score)$/.test(name),
  );
  const charts = [
    chart('Latency from due time, ms', rates, [
      { name: 'p50', values: rows.map((row) => row.latency_ms.p50) },
      { name: 'p90', values: rows.map((row) => row.latency_ms.p90) },
      { name: 'p99', values: rows.map((row) => row.latency_ms.p99) },
      { name: 'target', values: rows.map(() => report.settings.p99_ms) },
    ]),
    chart('Answered a second', rates, [
      { name: 'answered', values: rows.map((row) => row.answered_per_second) },
      { name: 'offered', values: rates },
    ]),
    chart(
      'Mean time by stage, ms',
      rates,
      stages.map((name) => ({
        name: shortStage(name),
        values: rows.map((row) => row.resources.stagesMs[name] ?? 0),
      })),
    ),
    chart('Cores in use', rates, [
      { name: 'api', values: rows.map((row) => row.resources.apiCores) },
      { name: 'encoders', values: rows.map((row) => row.resources.encoderCores) },
      ...(rows.some((row) => row.resources.gpuUtilisation !== undefined)
        ? [{ name: 'GPU (share)', values: rows.map((row) => row.resources.gpuUtilisation ?? 0) }]
        : []),
    ]),
  ];
  const capacity =
    report.capacity_per_second === null
      ? 'No rate met the target'
      : `${format(report.capacity_per_second)} requests a second`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>maxsimd capacity</title>
<style>
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem;margin-bottom:.2rem}h2{font-size:1rem;margin:1.6rem 0 .4rem}.big{font-size:1.8rem;font-weight:600}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(27rem,1fr));gap:1rem}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #8884}td:first-child,th:first-child{text-align:left}.missed{color:#c0392b}small{opacity:.75}
svg text{fill:currentColor;font:11px system-ui,sans-serif}
</style></head><body>
<h1>maxsimd capacity</h1><small>${escape(report.environment.cpu)}, ${report.environment.cores} cores; commit ${escape(report.environment.commit)}; ${escape(report.environment.date)}<br><code>${escape(report.environment.command)}</code></small>
<p class="big">${capacity}</p>
<p>at p99 &le; ${report.settings.p99_ms} ms, mix ${escape(JSON.stringify(report.settings.mix))}, ${report.settings.documents} documents, ${escape(report.settings.model)}. What gave out: <b>${report.verdict.resource}</b> (${escape(report.verdict.reason)}).${report.interrupted ? ' <b>The run was interrupted.</b>' : ''}</p>
<div class="grid">${charts.join('')}</div>
<h2>Steps</h2>
<table><tr><th>rate/s</th><th>requests</th><th>failed</th><th>answered/s</th><th>p50 ms</th><th>p90 ms</th><th>p99 ms</th><th>api cores</th><th>encoder cores</th></tr>
${rows
  .map(
    (row) =>
      `<tr${row.met_target ? '' : ' class="missed"'}><td>${format(row.rate_per_second)}</td><td>${row.requests}</td><td>${row.failed}</td><td>${format(row.answered_per_second)}</td><td>${format(row.latency_ms.p50)}</td><td>${format(row.latency_ms.p90)}</td><td>${format(row.latency_ms.p99)}</td><td>${row.resources.apiCores.toFixed(2)}</td><td>${row.resources.encoderCores.toFixed(2)}</td></tr>`,
  )
  .join('\n')}
</table></body></html>
`;
}

/** `/v1/indexes/:index_id/search encode` -> `search encode`. */
function shortStage(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

const palette = [
  '#2e7dd1',
  '#e08a1e',
  '#c0392b',
  '#7f8c8d',
  '#27976b',
  '#8e5ad1',
  '#b5892c',
  '#4a6fa5',
  '#a03c78',
  '#5f8f2f',
];

/** A line chart over the rates; both axes start at 0. */
function chart(title: string, x: readonly number[], series: readonly Series[]): string {
  const width = 460;
  const height = 240;
  const left = 52;
  const right = 24;
  const bottom = 200;
  const xMax = Math.max(...x, 1);
  const yMax = Math.max(...series.flatMap((line) => line.values.filter(Number.isFinite)), 1e-9) * 1.05;
  const px = (value: number): string => (left + (value / xMax) * (width - left - right)).toFixed(1);
  const py = (value: number): string => (bottom - (value / yMax) * (bottom - 24)).toFixed(1);
  const grid = [0, 0.25, 0.5, 0.75, 1]
    .map((share) => {
      const y = py(yMax * share);
      return `<line x1="${left}" x2="${width - right}" y1="${y}" y2="${y}" stroke="#8884"/><text x="${left - 6}" y="${Number(y) + 4}" text-anchor="end">${format(yMax * share)}</text><text x="${px(xMax * share)}" y="${bottom + 16}" text-anchor="middle">${format(xMax * share)}</text>`;
    })
    .join('');
  const lines = series
    .map((line, i) => {
      const color = palette[i % palette.length] ?? '#000';
      const points = line.values.map((value, at) => `${px(x[at] ?? 0)},${py(Math.min(value, yMax))}`);
      const dots = points
        .map(
          (point) =>
            `<circle cx="${point.split(',')[0]}" cy="${point.split(',')[1]}" r="2.5" fill="${color}"/>`,
        )
        .join('');
      return `<polyline fill="none" stroke="${color}" stroke-width="1.8" points="${points.join(' ')}"/>${dots}`;
    })
    .join('');
  const legend = series
    .map(
      (line, i) =>
        `<span style="color:${palette[i % palette.length] ?? '#000'}">&#9632;</span> ${escape(line.name)}`,
    )
    .join(' &nbsp; ');
  return `<figure style="margin:0"><h2>${escape(title)}</h2><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(title)}">${grid}${lines}<text x="${width / 2}" y="${height - 6}" text-anchor="middle">offered requests a second</text></svg><figcaption><small>${legend}</small></figcaption></figure>`;
}

function format(value: number): string {
  if (!Number.isFinite(value)) return '-';
  return value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(2);
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Two reports side by side: capacity, and p99 at the rates both measured. */
export function compareReports(a: CapacityReport, b: CapacityReport): string {
  const lines = [
    `A: ${a.environment.cpu}, commit ${a.environment.commit}: ${a.capacity_per_second ?? 'none'} requests/s at p99 <= ${a.settings.p99_ms} ms (${a.verdict.resource})`,
    `B: ${b.environment.cpu}, commit ${b.environment.commit}: ${b.capacity_per_second ?? 'none'} requests/s at p99 <= ${b.settings.p99_ms} ms (${b.verdict.resource})`,
  ];
  if (a.capacity_per_second !== null && b.capacity_per_second !== null) {
    lines.push(`B / A: ${(b.capacity_per_second / a.capacity_per_second).toFixed(3)}`);
  }
  if (
    JSON.stringify([a.settings.mix, a.settings.p99_ms, a.settings.documents]) !==
    JSON.stringify([b.settings.mix, b.settings.p99_ms, b.settings.documents])
  ) {
    lines.push('The settings differ: the figures do not compare directly.');
  }
  lines.push('', '| rate/s | A p50 | B p50 | A p99 | B p99 |', '|---|---|---|---|---|');
  for (const row of a.rows.toSorted((x, y) => x.rate_per_second - y.rate_per_second)) {
    const other = b.rows.find((candidate) => candidate.rate_per_second === row.rate_per_second);
    if (other === undefined) continue;
    lines.push(
      `| ${format(row.rate_per_second)} | ${format(row.latency_ms.p50)} | ${format(other.latency_ms.p50)} | ${format(row.latency_ms.p99)} | ${format(other.latency_ms.p99)} |`,
    );
  }
  return `${lines.join('\n')}\n`;
}
