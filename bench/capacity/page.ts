/** The capacity report as one self-contained HTML page (inline SVG, no scripts, no outside hosts). */
import { escapeHtml as escape, renderChart, type Series } from './chart.ts';
import { formatNumber as format, type CapacityReport, type StepReport } from './report.ts';
import type { Operation } from './schedule.ts';

/** Stages that are no part of another stage drawn beside them. */
const drawnStages =
  /^(admission|body|count|encode|encoder_queue|encoder_run|score|engine|resolve|append|commit|usage|answer)$/;
/** How far over the target latencies are drawn: beyond it they only say "too slow" and flatten the rest. */
const drawnTargets = 3;

const style = `
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem;margin:0}h2{font-size:1rem;margin:1.4rem 0 .3rem}small,figcaption{opacity:.8}
.big{font-size:1.9rem;font-weight:600;margin:1rem 0 0}.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr));gap:0 1.5rem}
figure{margin:0}figcaption{font-size:.8rem;display:flex;flex-wrap:wrap;gap:0 .9rem}
svg text{fill:currentColor;font:11px system-ui,sans-serif}.grid line{stroke:#8884}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.85rem}
td,th{padding:.25rem .5rem;text-align:right;border-bottom:1px solid #8884}td:first-child,th:first-child{text-align:left}
.missed{color:#c0392b}`;

export function renderHtml(report: CapacityReport): string {
  const { environment, settings, verdict } = report;
  const capacity =
    report.capacity_per_second === null
      ? 'No rate met the target'
      : `${format(report.capacity_per_second)} requests a second`;
  const mix = Object.entries(settings.mix)
    .filter(([, share]) => share > 0)
    .map(([operation, share]) => `${operation} ${share}`)
    .join(', ');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>maxsimd capacity</title>
<style>${style}</style></head><body>
<h1>maxsimd capacity</h1>
<small>${escape(environment.cpu)}, ${environment.cores} cores; commit ${escape(environment.commit)}; ${escape(environment.date)}<br><code>${escape(environment.command)}</code></small>
<p class="big">${capacity}</p>
<p>${settings.services > 1 ? `of ${settings.services} services ` : ''}at p99 &le; ${settings.p99_ms} ms; mix: ${escape(mix)}; ${settings.documents} documents of ${escape(settings.texts)}; ${escape(settings.model)}.<br>
What gave out: <b>${verdict.resource}</b> (${escape(verdict.reason)}).${report.interrupted ? '<br><b>The run was interrupted: these are the steps it had ended.</b>' : ''}</p>
<div class="charts">${chartsOf(report).join('')}</div>
<h2>Steps</h2>
<div class="scroll">${tableOf(report.rows)}</div>
</body></html>
`;
}

function chartsOf({ rows, settings }: CapacityReport): readonly string[] {
  if (rows.length === 0) return [];
  const rates = rows.map((row) => row.rate_per_second);
  const line = (name: string, pick: (row: StepReport) => number | undefined): Series => ({
    name,
    values: rows.map(pick),
  });
  const chart = (title: string, series: readonly Series[], yMax?: number): string =>
    renderChart({
      title,
      x: rates,
      xTitle: 'offered requests a second',
      // What was not measured, or never happened, draws nothing.
      series: series.filter(({ values }) => values.some((value) => value !== undefined && value > 0)),
      ...(yMax === undefined ? {} : { yMax }),
    });
  const target: Series = { name: 'target', values: rates.map(() => settings.p99_ms), dashed: true };
  const operations = (Object.keys(settings.mix) as Operation[]).filter((name) => settings.mix[name] > 0);
  const stages = [...new Set(rows.flatMap((row) => Object.keys(row.resources.stagesMs)))].filter((name) =>
    drawnStages.test(name.slice(name.lastIndexOf(' ') + 1)),
  );
  const tooSlow = settings.p99_ms * drawnTargets;
  return [
    chart(
      'Latency from the moment due, ms',
      [
        ...(['p50', 'p90', 'p99'] as const).map((name) => line(name, (row) => row.latency_ms?.[name])),
        target,
      ],
      tooSlow,
    ),
    chart('Throughput, requests a second', [
      line('answered', (row) => row.answered_per_second),
      { ...line('offered', (row) => row.rate_per_second), dashed: true },
    ]),
    ...(operations.length > 1
      ? [
          chart(
            'p99 by operation, ms',
            [...operations.map((name) => line(name, (row) => row.by_operation[name]?.p99)), target],
            tooSlow,
          ),
        ]
      : []),
    ...operations.map((operation) =>
      chart(
        `Mean time of ${operation === 'upsert' ? 'an' : 'a'} ${operation} by stage, ms`,
        stages
          .filter((name) => routes[operation].test(name))
          .map((name) => line(stageName(name), (row) => row.resources.stagesMs[name])),
      ),
    ),
    chart('Cores in use', [
      line('event loop of the api', (row) => row.resources.eventLoopCores),
      line('of the busiest encoder', (row) => row.resources.encoderLoopCores),
      line('engine', (row) => row.resources.engineCores),
      line('api, all threads', (row) => row.resources.apiCores),
      line('encoders', (row) => row.resources.encoderCores),
      line('load generator', (row) => row.resources.generatorCores),
      line('whole machine', (row) => row.resources.machineCores),
    ]),
    chart('Event-loop delay p99, ms', [line('api', (row) => row.resources.eventLoopDelayP99Ms)]),
    ...(rows.some((row) => (row.resources.diskBytesPerSecond ?? 0) > 0)
      ? [
          chart('Written to disk, MB a second', [
            line('written', (row) => (row.resources.diskBytesPerSecond ?? 0) / 1e6),
          ]),
        ]
      : []),
    ...(rows.some((row) => row.resources.gpu !== undefined)
      ? [
          chart(
            'GPU in use, share of time',
            [line('busiest GPU', (row) => row.resources.gpu?.utilisation)],
            1,
          ),
        ]
      : []),
  ];
}

/** Which route's stages are an operation's. */
const routes: Readonly<Record<Operation, RegExp>> = {
  search: /\/search /,
  upsert: /\/documents /,
  score: /\/score /,
};

function stageName(name: string): string {
  return name.slice(name.lastIndexOf(' ') + 1).replace('encoder_', 'encode: ');
}

function tableOf(rows: readonly StepReport[]): string {
  const titles = [
    'rate/s',
    'seconds',
    'requests',
    'failed',
    'answered/s',
    'p50 ms',
    'p90 ms',
    'p99 ms',
    'max ms',
    'event loop',
    'engine',
    'encoders',
  ];
  const body = rows.map((row) => {
    const { latency_ms: latency, resources } = row;
    const cells = [
      format(row.rate_per_second),
      format(row.seconds),
      String(row.requests),
      failuresOf(row),
      format(row.answered_per_second),
      ...(['p50', 'p90', 'p99', 'max'] as const).map((name) => format(latency?.[name])),
      ...[resources.eventLoopCores, resources.engineCores, resources.encoderCores].map(format),
    ];
    return `<tr${row.met_target ? '' : ' class="missed"'}>${cells.map((cell) => `<td>${escape(cell)}</td>`).join('')}</tr>`;
  });
  return `<table><tr>${titles.map((title) => `<th>${title}</th>`).join('')}</tr>\n${body.join('\n')}\n</table><small>The last three columns are cores in use.</small>`;
}

function failuresOf({ failed, failures }: StepReport): string {
  if (failed === 0) return '0';
  const kinds = Object.entries(failures).map(
    ([status, count]) => `${count} x ${status === '0' ? 'no answer' : status}`,
  );
  return `${failed} (${kinds.join(', ')})`;
}
