/**
 * Alert rules and dashboard: they name only metrics and labels that exist, the dashboard has every metric, promtool reads them, and
 * each alert is seen to fire and to keep quiet.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { run } from '../../clients/tools/install.ts';
import { installChecks } from '../../deploy/local/install.ts';
import { describeMetrics } from '../../src/app/telemetry/describe-metrics.ts';
import { createMetrics } from '../../src/observation/metrics.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

const root = path.resolve(import.meta.dirname, '../..');
const rulesFile = 'alerts.yml';
const rules = readFileSync(path.join(root, 'deploy/monitoring', rulesFile), 'utf8');
const dashboard = readFileSync(path.join(root, 'deploy/monitoring/dashboard.json'), 'utf8');

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

const alerts = (parse(rules) as { readonly groups: readonly [{ readonly rules: readonly Alert[] }] })
  .groups[0].rules;

let promtool: string;
beforeAll(async () => {
  ({ promtool } = await installChecks());
});

it('every alert has its row in the guide, and the guide has no other', () => {
  const guide = readFileSync(path.join(root, 'docs/guide/operate.md'), 'utf8');
  const rows = [...guide.matchAll(/^\| `(Maxsimd\w+)` \| (\w+) \| (.+?) \| .+ \|$/gm)];
  expect(rows.map(([, ...cells]) => cells)).toEqual(
    alerts.map(({ alert, labels, annotations }) => [alert, labels.severity, annotations.summary]),
  );
  for (const { alert, annotations } of alerts)
    expect(annotations.runbook).toBe(`docs/guide/operate.md#alerts, ${alert}`);
});

/** Label names by metric; Prometheus adds those of the scrape, and histograms have series of their own. */
const known = new Map<string, readonly string[]>([['up', []]]);
for (const { name, type, labelNames = [] } of describeMetrics()) {
  if (type === 'histogram') {
    known.set(`${name}_bucket`, [...labelNames, 'le']);
    for (const ending of ['_sum', '_count']) known.set(`${name}${ending}`, labelNames);
  } else known.set(name, labelNames);
}
const scrapeLabels = ['instance', 'job'];

const ofProcess = new Set(
  [...(await createMetrics().render()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name),
);

/** Metrics and labels of an expression that no process has. */
function unknownIn(expression: string): readonly string[] {
  return [...expression.matchAll(/\b(maxsimd_\w+|up)\b(?:\{([^}]*)\})?/g)].flatMap(
    ([, name = '', selectors = '']) => {
      const labels = ofProcess.has(name) ? [] : known.get(name);
      if (labels === undefined) return [name];
      return [...selectors.matchAll(/(\w+)(?==|!=|=~|!~)/g)]
        .map(([, label = '']) => label)
        .filter((label) => ![...labels, ...scrapeLabels].includes(label));
    },
  );
}

interface DrawnPanel {
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

const { panels } = JSON.parse(dashboard) as { readonly panels: readonly DrawnPanel[] };
const dashboardExpressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

describe('metrics and labels', () => {
  it.each([...alerts.map(({ expr }) => expr), ...dashboardExpressions])('of %s exist', async (text) => {
    expect(text).toMatch(/maxsimd_|^up\{/);
    expect(unknownIn(text)).toEqual([]);
  });

  it('that do not exist would be found', () => {
    expect(unknownIn('rate(maxsimd_http_request_total[5m])')).toEqual(['maxsimd_http_request_total']);
    expect(unknownIn('maxsimd_http_requests_total{code="",plan="x"}')).toEqual(['plan']);
    expect(unknownIn('maxsimd_http_request_duration_seconds > 1')).not.toEqual([]);
  });

  it('all stand in the dashboard, each in one panel beside the first row, and no panel lies on another', () => {
    for (const { name } of describeMetrics())
      expect(
        dashboardExpressions.filter((text) => new RegExp(`\\b${name}(_bucket)?\\{`).test(text)),
      ).not.toEqual([]);
    const taken = new Set<string>();
    for (const { title, gridPos } of panels) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
          expect(taken.has(`${x} ${y}`), title).toBe(false);
          taken.add(`${x} ${y}`);
        }
      }
    }
  });
});

type Series = Readonly<Record<string, string>>;

interface Case {
  /** Series and values of a minute each, at the end of which it fires. */
  readonly fires: Series;
  readonly labels: Readonly<Record<string, string>>;
  readonly quiet: Series;
}

const node = { instance: 'a' };
const bucket = (name: string, labels: string, le: string): string =>
  `${name}_bucket{instance="a"${labels},le="${le}"}`;
const searches = (le: string): string =>
  bucket('maxsimd_http_request_duration_seconds', ',route="/v1/indexes/:index_id/search"', le);
const readHeads = (le: string): string =>
  bucket('maxsimd_cluster_call_seconds', ',service="catalog",operation="read-heads"', le);
const follows = (le: string): string => bucket('maxsimd_cluster_catch_up_seconds', ',kind="follows"', le);
const lookups = (outcome: string): string =>
  `maxsimd_cluster_cache_lookups_total{instance="a",outcome="${outcome}"}`;

/** Two hours. */
const constant = (value: number): string => `${value}x120`;
const growing = (step: number): string => `0+${step}x120`;

const cases: Readonly<Record<string, Case>> = {
  MaxsimdDown: {
    fires: { 'up{job="maxsimd",instance="a"}': constant(0) },
    labels: { ...node, job: 'maxsimd' },
    quiet: { 'up{job="maxsimd",instance="a"}': constant(1), 'up{job="other",instance="b"}': constant(0) },
  },
  MaxsimdNoEncoder: {
    fires: { 'maxsimd_encoder_ready{instance="a"}': constant(0) },
    labels: node,
    quiet: { 'maxsimd_encoder_ready{instance="a"}': constant(1) },
  },
  MaxsimdErrors: {
    fires: {
      'maxsimd_http_requests_total{instance="a",route="/v1/usage",status="503"}': growing(6),
      'maxsimd_http_requests_total{instance="a",route="/v1/usage",status="200"}': growing(94),
    },
    labels: node,
    quiet: {
      'maxsimd_http_requests_total{instance="a",route="/readyz",status="503"}': growing(100),
      'maxsimd_http_requests_total{instance="a",route="/v1/usage",status="503"}': growing(4),
      'maxsimd_http_requests_total{instance="a",route="/v1/usage",status="200"}': growing(96),
    },
  },
  MaxsimdSearchSlow: {
    fires: {
      [searches('1')]: growing(98),
      [searches('2.5')]: growing(100),
      [searches('+Inf')]: growing(100),
    },
    labels: node,
    quiet: {
      [searches('1')]: growing(100),
      [searches('2.5')]: growing(100),
      [searches('+Inf')]: growing(100),
    },
  },
  MaxsimdRecallLow: {
    fires: {
      'maxsimd_index_recall_at_10{instance="a",index="i",bound="high"}': constant(0.97),
      'maxsimd_recall_target{instance="a"}': constant(0.98),
    },
    labels: { ...node, index: 'i', bound: 'high' },
    quiet: {
      'maxsimd_index_recall_at_10{instance="a",index="i",bound="high"}': constant(0.981),
      'maxsimd_index_recall_at_10{instance="a",index="i",bound="low"}': constant(0.97),
      'maxsimd_recall_target{instance="a"}': constant(0.98),
    },
  },
  MaxsimdEngineDeviceFailed: {
    fires: { 'maxsimd_engine_device_failed{instance="a"}': constant(1) },
    labels: node,
    quiet: { 'maxsimd_engine_device_failed{instance="a"}': constant(0) },
  },
  MaxsimdEventLoopBusy: {
    fires: { 'maxsimd_nodejs_eventloop_lag_p99_seconds{instance="a"}': constant(0.06) },
    labels: node,
    quiet: { 'maxsimd_nodejs_eventloop_lag_p99_seconds{instance="a"}': constant(0.04) },
  },
  MaxsimdEncodersFull: {
    fires: { 'maxsimd_encoder_dropped_total{instance="a",encoder="e",reason="rejected"}': growing(10) },
    labels: node,
    quiet: { 'maxsimd_encoder_dropped_total{instance="a",encoder="e",reason="cancelled"}': growing(10) },
  },
  MaxsimdEncodersRestart: {
    fires: { 'maxsimd_encoder_events_total{instance="a",event="ejected"}': growing(1) },
    labels: node,
    quiet: { 'maxsimd_encoder_events_total{instance="a",event="admitted"}': growing(1) },
  },
  MaxsimdDamage: {
    fires: { 'maxsimd_store_records_verified_total{instance="a",verdict="damaged"}': '0x100 1x20' },
    labels: { ...node, verdict: 'damaged' },
    quiet: { 'maxsimd_store_records_verified_total{instance="a",verdict="intact"}': growing(100) },
  },
  MaxsimdUsageWaits: {
    fires: { 'maxsimd_usage_waiting_tenants{instance="a"}': constant(1) },
    labels: node,
    quiet: { 'maxsimd_usage_waiting_tenants{instance="a"}': constant(0) },
  },
  MaxsimdMemoryFull: {
    fires: {
      'maxsimd_engine_memory_bytes{instance="a",kind="taken"}': constant(95),
      'maxsimd_engine_memory_bytes{instance="a",kind="bound"}': constant(100),
    },
    labels: node,
    quiet: {
      'maxsimd_engine_memory_bytes{instance="a",kind="taken"}': constant(85),
      'maxsimd_engine_memory_bytes{instance="a",kind="held"}': constant(100),
      'maxsimd_engine_memory_bytes{instance="a",kind="bound"}': constant(100),
    },
  },
  MaxsimdDescriptorsFull: {
    fires: {
      'maxsimd_process_open_fds{instance="a"}': constant(900),
      'maxsimd_process_max_fds{instance="a"}': constant(1_000),
    },
    labels: node,
    quiet: {
      'maxsimd_process_open_fds{instance="a"}': constant(700),
      'maxsimd_process_max_fds{instance="a"}': constant(1_000),
    },
  },
  MaxsimdConnectionsRefused: {
    fires: { 'maxsimd_http_connections_refused_total{instance="a"}': growing(1) },
    labels: node,
    quiet: { 'maxsimd_http_connections_refused_total{instance="a"}': constant(7) },
  },
  MaxsimdSharedServiceFails: {
    fires: {
      'maxsimd_cluster_call_failures_total{instance="a",service="objects",operation="get"}': growing(10),
    },
    labels: { ...node, service: 'objects' },
    quiet: {
      'maxsimd_cluster_call_failures_total{instance="a",service="objects",operation="get"}': growing(3),
      'maxsimd_cluster_call_failures_total{instance="a",service="catalog",operation="get"}': growing(3),
    },
  },
  MaxsimdLimiterAway: {
    fires: { 'maxsimd_cluster_limiter_fallback{instance="a"}': constant(1) },
    labels: node,
    quiet: { 'maxsimd_cluster_limiter_fallback{instance="a"}': constant(0) },
  },
  MaxsimdNodesLost: {
    fires: { 'maxsimd_cluster_nodes{instance="a"}': '3x90 2x30' },
    labels: {},
    quiet: { 'maxsimd_cluster_nodes{instance="a"}': '2x20 3x100' },
  },
  MaxsimdCatalogSlow: {
    fires: {
      [readHeads('0.01')]: growing(40),
      [readHeads('0.05')]: growing(100),
      [readHeads('+Inf')]: growing(100),
    },
    labels: node,
    quiet: {
      [readHeads('0.01')]: growing(90),
      [readHeads('0.05')]: growing(100),
      [readHeads('+Inf')]: growing(100),
    },
  },
  MaxsimdCatchUpSlow: {
    fires: { [follows('2.5')]: growing(90), [follows('10')]: growing(100), [follows('+Inf')]: growing(100) },
    labels: node,
    quiet: { [follows('2.5')]: growing(100), [follows('10')]: growing(100), [follows('+Inf')]: growing(100) },
  },
  MaxsimdCacheSmall: {
    fires: {
      'maxsimd_cluster_cache_evictions_total{instance="a"}': growing(5),
      [lookups('hit')]: growing(80),
      [lookups('miss')]: growing(20),
    },
    labels: node,
    // A new node misses much and evicts nothing.
    quiet: {
      'maxsimd_cluster_cache_evictions_total{instance="a"}': constant(5),
      [lookups('hit')]: growing(80),
      [lookups('miss')]: growing(20),
    },
  },
  MaxsimdMergeLeasesLost: {
    fires: { 'maxsimd_cluster_merge_leases_total{instance="a",event="lost"}': '0x100 1x20' },
    labels: { ...node, event: 'lost' },
    quiet: { 'maxsimd_cluster_merge_leases_total{instance="a",event="taken"}': growing(1) },
  },
};

function inputOf(series: Series): object {
  return Object.entries(series).map(([name, values]) => ({ series: name, values }));
}

/** Tests of promtool: each alert fires by its one series and not by its other. */
function ruleTests(tested: readonly Alert[]): string {
  const tests = tested.flatMap((alert) => {
    const { fires, labels, quiet } = cases[alert.alert]!;
    const firing = {
      exp_labels: { ...alert.labels, ...labels },
      exp_annotations: alert.annotations,
    };
    const expected = (exp_alerts: readonly object[]) => [
      { eval_time: '115m', alertname: alert.alert, exp_alerts },
    ];
    return [
      { interval: '1m', input_series: inputOf(fires), alert_rule_test: expected([firing]) },
      { interval: '1m', input_series: inputOf(quiet), alert_rule_test: expected([]) },
    ];
  });
  return stringify({ rule_files: [rulesFile], evaluation_interval: '5m', tests });
}

async function testRules(text: string, tested = alerts): Promise<string> {
  const directory = await newDirectory();
  writeFileSync(path.join(directory, rulesFile), text);
  writeFileSync(path.join(directory, 'tests.yml'), ruleTests(tested));
  return run(promtool, ['test', 'rules', 'tests.yml'], directory);
}

/** As promtool writes a range of time that Grafana fills in. */
function recorded(expressions: readonly string[]): string {
  const group = expressions.map((text, place) => ({
    record: `panel_${place}`,
    expr: text.replaceAll('$__rate_interval', '5m'),
  }));
  return stringify({ groups: [{ name: 'panels', rules: group }] });
}

async function checkRules(text: string): Promise<string> {
  const directory = await newDirectory();
  writeFileSync(path.join(directory, rulesFile), text);
  return run(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', rulesFile], directory);
}

/** All metrics of a server and of a node, each with a sample. */
async function exampleScrape(): Promise<string> {
  const metrics = createMetrics();
  for (const { type, name, ...described } of describeMetrics()) {
    const description = { ...described, name: name.replace(/^maxsimd_/, '') };
    const labels = Object.fromEntries((described.labelNames ?? []).map((label) => [label, 'a']));
    const sample = { labels, value: 1 };
    if (type === 'gauge') metrics.registerGauge(description, () => [sample]);
    else if (type === 'counter') metrics.registerCounter(description, () => [sample]);
    else metrics.histogram({ ...description, buckets: [1] })(labels, 1);
  }
  return metrics.render();
}

/** Returns what promtool finds. */
async function checkMetrics(text: string): Promise<string> {
  const directory = await newDirectory();
  writeFileSync(path.join(directory, 'metrics.txt'), text);
  return run('sh', ['-c', `"$0" check metrics < metrics.txt 2>&1`, promtool], directory);
}

describe('promtool', () => {
  it('has no findings in the metrics', async () => {
    const scrape = await exampleScrape();
    expect(scrape.match(/^# TYPE maxsimd_/gm)!.length).toBeGreaterThan(describeMetrics().length + 20);
    await expect(checkMetrics(scrape)).resolves.toBe('');
    const misnamed = '# HELP a_total Counts.\n# TYPE a_total gauge\na_total 1\n';
    await expect(checkMetrics(misnamed)).rejects.toThrow('a_total non-counter metrics');
  });

  it('has no findings in the alert rules', async () => {
    expect(await checkRules(rules)).toContain(`${alerts.length} rules found`);
  });

  it('understands every query of the dashboard', async () => {
    expect(await checkRules(recorded(dashboardExpressions))).toContain(
      `${dashboardExpressions.length} rules found`,
    );
  });

  it('finds a query with a fault in it', async () => {
    await expect(checkRules(recorded(['sum by (le) (rate(maxsimd_x[5m])']))).rejects.toThrow('unclosed');
  });

  it('sees each alert fire, and keep quiet', async () => {
    expect(Object.keys(cases)).toEqual(alerts.map(({ alert }) => alert));
    expect(await testRules(rules)).toContain('SUCCESS');
  });

  it.each(['== 2', '>= 0'])(
    'finds an alert that never fires, or always does: maxsimd_encoder_ready %s',
    async (by) => {
      const broken = rules.replace('maxsimd_encoder_ready == 0', `maxsimd_encoder_ready ${by}`);
      expect(broken).not.toBe(rules);
      const tested = alerts.filter(({ alert }) => alert === 'MaxsimdNoEncoder');
      await expect(testRules(broken, tested)).rejects.toThrow('MaxsimdNoEncoder');
    },
  );
});
