/** A dashboard of Grafana with a panel for every metric, so that a new one is never forgotten. */
import { describeMetrics } from '../../src/app/telemetry/describe-metrics.ts';
import type { RegisteredMetric } from '../../src/observation/metrics.ts';

export const dashboardFile = 'dashboard.json';

interface Query {
  readonly expression: string;
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  readonly help: string;
  readonly unit: string;
  readonly queries: readonly Query[];
}

const selector = 'instance=~"$instance"';
const perSecond = (name: string, more = ''): string => `rate(${name}{${selector}${more}}[$__rate_interval])`;
const searchRoute = 'route="/v1/indexes/:index_id/search"';

/** The panels that an operator looks at first. The others follow by metric. */
const glance: readonly Panel[] = [
  {
    title: 'Encoders ready',
    help: 'Whether an encoder serves each process.',
    unit: 'none',
    queries: [{ expression: `maxsimd_encoder_ready{${selector}}`, legend: '{{instance}}' }],
  },
  {
    title: 'Requests by status',
    help: 'Requests ended.',
    unit: 'reqps',
    queries: [
      { expression: `sum by (status) (${perSecond('maxsimd_http_requests_total')})`, legend: '{{status}}' },
    ],
  },
  {
    title: 'Searches: median, 95th and 99th percentile',
    help: 'From the first header to the end of the answer.',
    unit: 's',
    queries: [0.5, 0.95, 0.99].map((share) =>
      quantile('maxsimd_http_request_duration_seconds', share, searchRoute),
    ),
  },
  {
    title: 'Stages of a search, mean',
    help: 'Where the time goes; stages of the encoder lie within `encode`, those of the engine within `engine`, all of these within `service`.',
    unit: 's',
    queries: [
      {
        expression: `sum by (stage) (${perSecond('maxsimd_http_request_stage_seconds_sum', `,${searchRoute}`)}) / sum by (stage) (${perSecond('maxsimd_http_request_stage_seconds_count', `,${searchRoute}`)})`,
        legend: '{{stage}}',
      },
    ],
  },
  {
    title: 'Event loop, 99th percentile of its delay',
    help: 'Of the API process, as Node reports it.',
    unit: 's',
    queries: [
      { expression: `maxsimd_nodejs_eventloop_lag_p99_seconds{${selector}}`, legend: '{{instance}}' },
    ],
  },
  {
    title: 'Resident memory',
    help: 'Of the API process.',
    unit: 'bytes',
    queries: [{ expression: `maxsimd_process_resident_memory_bytes{${selector}}`, legend: '{{instance}}' }],
  },
];

/** Rows of the dashboard by the first word of a metric's name. */
const rows: Readonly<Record<string, string>> = {
  http: 'HTTP',
  requests: 'HTTP',
  tenant: 'Tenants',
  encoder: 'Encoders',
  engine: 'Engine',
  index: 'Engine',
  recall: 'Engine',
  store: 'Store',
  usage: 'Store',
  trace: 'Traces',
  cluster: 'Several nodes',
};

function quantile(name: string, share: number, more: string, by: readonly string[] = []): Query {
  const rate = perSecond(`${name}_bucket`, more === '' ? '' : `,${more}`);
  return {
    expression: `histogram_quantile(${share}, sum by (${['le', ...by].join(', ')}) (${rate}))`,
    legend: [...by.map((label) => `{{${label}}}`), `p${share * 100}`].join(' '),
  };
}

function panelOf({ name, type, help, labelNames = [] }: RegisteredMetric): Panel {
  const title = name.replace(/^maxsimd_/, '');
  const labels = labelNames.filter((label) => label !== 'encoder');
  const legend = ['instance', ...labelNames].map((label) => `{{${label}}}`).join(' ');
  if (type === 'histogram') {
    const queries = [0.5, 0.99].map((share) => quantile(name, share, '', labels));
    return { title, help, unit: unitOf(name), queries };
  }
  if (type === 'gauge') {
    return { title, help, unit: unitOf(name), queries: [{ expression: `${name}{${selector}}`, legend }] };
  }
  const by = ['instance', ...labelNames].join(', ');
  const queries = [{ expression: `sum by (${by}) (${perSecond(name)})`, legend }];
  return { title, help, unit: name.endsWith('_bytes_total') ? 'Bps' : 'cps', queries };
}

function unitOf(name: string): string {
  const units = { _seconds: 's', _bytes: 'bytes', _ratio: 'percentunit', _per_second: 'cps' };
  return Object.entries(units).find(([ending]) => name.endsWith(ending))?.[1] ?? 'none';
}

/** Panels of a row stand two beside each other. */
const panelWidth = 12;
const panelHeight = 8;

export function dashboard(): string {
  const byRow = Map.groupBy(describeMetrics(), ({ name }) => rowOf(name));
  const sections: readonly (readonly [string, readonly Panel[]])[] = [
    ['At a glance', glance],
    ...[...byRow].map(([row, metrics]) => [row, metrics.map(panelOf)] as const),
  ];
  const panels: object[] = [];
  let y = 0;
  for (const [title, inside] of sections) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: 2 * panelWidth, h: 1 },
    });
    y += 1;
    for (const [place, panel] of inside.entries()) {
      const at = { x: (place % 2) * panelWidth, y: y + Math.floor(place / 2) * panelHeight };
      panels.push(drawn(panel, panels.length + 1, at));
    }
    y += Math.ceil(inside.length / 2) * panelHeight;
  }
  const source = { type: 'prometheus', uid: '${datasource}' };
  const described = {
    title: 'maxsimd',
    uid: 'maxsimd',
    description: 'Made by `node deploy/monitoring/generate.ts` from the table of metrics.',
    tags: ['maxsimd'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
        {
          name: 'instance',
          type: 'query',
          label: 'Process',
          datasource: source,
          query: { query: 'label_values(maxsimd_http_requests_in_flight, instance)', refId: 'instance' },
          refresh: 2,
          multi: true,
          includeAll: true,
          current: { selected: true, text: ['All'], value: ['$__all'] },
        },
      ],
    },
    panels,
  };
  return `${JSON.stringify(described, undefined, 2)}\n`;
}

function rowOf(name: string): string {
  const [, word = ''] = name.split('_');
  const row = rows[word];
  if (row === undefined) throw new Error(`no row of the dashboard is for ${name}`);
  return row;
}

function drawn(panel: Panel, id: number, at: { readonly x: number; readonly y: number }): object {
  return {
    id,
    type: 'timeseries',
    title: panel.title,
    description: panel.help,
    datasource: { type: 'prometheus', uid: '${datasource}' },
    gridPos: { ...at, w: panelWidth, h: panelHeight },
    fieldConfig: { defaults: { unit: panel.unit, custom: { lineWidth: 1, fillOpacity: 5 } }, overrides: [] },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
    targets: panel.queries.map(({ expression, legend }, place) => ({
      refId: String.fromCodePoint('A'.codePointAt(0)! + place),
      expr: expression,
      legendFormat: legend,
    })),
  };
}
