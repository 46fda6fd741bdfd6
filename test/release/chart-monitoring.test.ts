/**
 * The chart's parts for monitoring: metrics, alerts and a dashboard. The schemas of Kubernetes have no objects of the
 * Prometheus operator, so this file has the fields that the chart uses.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { deploy, object, objects, type Release, render } from './deploy/chart.ts';

const textOf = (file: string): string =>
  readFileSync(path.resolve(import.meta.dirname, '../../deploy/monitoring', file), 'utf8');

const selected = { release: 'prometheus' };
const scrapers = [{ namespaceSelector: {} }];
const values = [
  {},
  { serviceMonitor: { enabled: true } },
  {
    serviceMonitor: { enabled: true, labels: selected },
    prometheusRule: { enabled: true, labels: selected },
    dashboard: { enabled: true },
    networkPolicy: { scrapers },
  },
];

let by: Readonly<Record<'plain' | 'monitored' | 'most', Release>>;
let monitored: Release;
let most: Release;
beforeAll(async () => {
  const [plain, ...others] = await render(deploy, ...values);
  [monitored, most] = others as [Release, Release];
  by = { plain: plain!, monitored, most };
});

describe('who reads metrics', () => {
  it.each([
    ['nobody', 'plain', undefined],
    [
      'the Prometheus of a ServiceMonitor',
      'monitored',
      [
        {
          namespaceSelector: {},
          podSelector: { matchLabels: { 'app.kubernetes.io/managed-by': 'prometheus-operator' } },
        },
      ],
    ],
    ['those that are named, and no others', 'most', scrapers],
  ] as const)('%s', (_who, which, from) => {
    const rules_ = object(by[which], 'NetworkPolicy', 'release-node')['spec'].ingress as readonly {
      readonly ports: readonly { readonly port: string }[];
      readonly from?: unknown;
    }[];
    expect(rules_.find(({ ports }) => ports[0]?.port === 'metrics')?.from).toEqual(from);
  });

  it('gives its nodes the job that the alerts look for', () => {
    const { spec } = object(monitored, 'ServiceMonitor');
    const services = objects(monitored, 'Service').filter(({ metadata: { labels } }) =>
      Object.entries(spec.selector.matchLabels as object).every(([name, value]) => labels[name] === value),
    );
    expect(services).toHaveLength(1);
    const [, job] = /job="([^"]+)"/.exec(textOf('alerts.yml')) ?? [];
    expect(services[0]?.metadata.labels[spec.jobLabel]).toBe(job);
  });
});

/** The fields that the chart uses, as the definitions of the Prometheus operator 0.93 have them. */
const operator = (kind: string, spec: z.ZodType) =>
  z.strictObject({
    apiVersion: z.literal('monitoring.coreos.com/v1'),
    kind: z.literal(kind),
    metadata: z.strictObject({ name: z.string().min(1), labels: z.record(z.string(), z.string()) }),
    spec,
  });
const duration = z
  .string()
  .regex(/^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$/);
const texts = z.record(z.string(), z.string());
const monitor = operator(
  'ServiceMonitor',
  z.strictObject({
    jobLabel: z.string(),
    selector: z.strictObject({ matchLabels: texts }),
    endpoints: z.array(z.strictObject({ port: z.string(), path: z.string(), interval: duration })).min(1),
  }),
);
const rule = operator(
  'PrometheusRule',
  z.strictObject({
    groups: z.array(
      z.strictObject({
        name: z.string().min(1),
        rules: z.array(
          z.strictObject({
            alert: z.string(),
            expr: z.string(),
            for: duration,
            labels: texts,
            annotations: texts,
          }),
        ),
      }),
    ),
  }),
);

describe('objects of the Prometheus operator', () => {
  it('have its fields, and a ServiceMonitor names a port that there is', () => {
    const found = object(most, 'ServiceMonitor');
    expect(() => monitor.parse(found)).not.toThrow();
    expect(found.metadata.labels).toMatchObject({ release: 'prometheus' });
    const ports = object(most, 'Service', 'release-nodes')['spec'].ports as readonly {
      readonly name: string;
    }[];
    expect(ports.map(({ name }) => name)).toContain(found['spec'].endpoints[0].port);
    const withFault = { ...found, spec: { ...found['spec'], jobLable: 'x' } };
    expect(() => monitor.parse(withFault)).toThrow('jobLable');
  });

  it('have the alerts of deploy/monitoring', () => {
    const found = object(most, 'PrometheusRule');
    expect(() => rule.parse(found)).not.toThrow();
    expect(found['spec']).toEqual(parse(textOf('alerts.yml')));
    const [group] = found['spec'].groups;
    const withFault = {
      ...found,
      spec: { groups: [{ ...group, rules: [{ ...group.rules[0], for: '2 m' }] }] },
    };
    expect(() => rule.parse(withFault)).toThrow('for');
  });

  it('have a dashboard beside them that Grafana loads', () => {
    const { metadata, data } = object(most, 'ConfigMap', 'release-dashboard');
    expect(metadata.labels).toMatchObject({ grafana_dashboard: '1' });
    expect(JSON.parse(data['release.json'] as string)).toEqual(JSON.parse(textOf('dashboard.json')));
  });
});
