/**
 * The chart: rendered with each option, read by the schemas of two versions of Kubernetes, and its objects compared with each
 * other and with the program.
 */
import { readFileSync } from 'node:fs';
import { chmod, mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../src/app/config.ts';
import { parseEncoderArguments } from '../../src/encoder/server/arguments.ts';
import { makeScratch } from '../support/running/launch.ts';
import { startServer } from '../support/running/server.ts';
import {
  chart,
  deploy,
  type Manifest,
  object,
  objects,
  type Release,
  render,
  validate,
} from './deploy/chart.ts';

const root = path.join(deploy, '..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

const cluster = { mode: 'cluster', blobs: { url: 's3://bucket/prefix' } };
const placed = {
  podAnnotations: { note: 'a' },
  podLabels: { team: 'b' },
  nodeSelector: { disk: 'nvme' },
  affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
  tolerations: [{ key: 'disk', operator: 'Exists' }],
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} },
  ],
};
const autoscaling = { enabled: true, minReplicas: 2, maxReplicas: 5, cpuPercent: 60 };
/** Everything that is off, in either mode. */
const most = {
  authoritiesSecretName: 'authorities',
  operatorsSecretName: 'operators',
  imagePullSecrets: [{ name: 'registry' }],
  firstTenant: {
    enabled: true,
    name: 'first tenant',
    podAnnotations: { note: 'job' },
    podLabels: { 'sidecar.istio.io/inject': 'false' },
  },
  models: { volume: { persistentVolumeClaim: { claimName: 'models' } } },
  serviceAccount: { annotations: { role: 'maxsimd' } },
  service: { annotations: { internal: 'true' } },
  ingress: {
    enabled: true,
    className: 'nginx',
    annotations: { a: 'b' },
    host: 'a.example',
    tlsSecretName: 'tls',
  },
  networkPolicy: { clients: [{ podSelector: {} }], scrapers: [{ namespaceSelector: {} }] },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
  dashboard: { enabled: true },
};
const variants = {
  single: {},
  singleMost: {
    ...most,
    single: { volume: { size: '5Gi', storageClass: 'local' } },
    node: { environment: { MAXSIMD_LOG_LEVEL: 'warn' }, ...placed },
  },
  cluster,
  clusterMost: {
    ...cluster,
    ...most,
    blobs: { ...cluster.blobs, endpoint: 'https://store.example', credentialsSecretName: 'store' },
    node: {
      ...placed,
      autoscaling,
      environment: { MAXSIMD_LOG_LEVEL: 'warn' },
      cache: { storageClass: 'local' },
      drainSeconds: 300,
    },
    encoder: { ...placed, autoscaling, models: ['/models/own/1'] },
  },
  example: parse(read('examples/kubernetes/values.yaml')) as object,
  openShift: { ...cluster, runAs: null, listenAddress: '::', firstTenant: { enabled: true } },
  ownAccount: { serviceAccount: { name: 'mine' }, firstTenant: { enabled: true, secretName: 'key' } },
} as const;
type Variant = keyof typeof variants;
const names = Object.keys(variants) as readonly Variant[];

let releases: Readonly<Record<Variant, Release>>;
beforeAll(async () => {
  const rendered = await render(deploy, ...Object.values(variants));
  releases = Object.fromEntries(names.map((name, place) => [name, rendered[place]])) as typeof releases;
});

const all = (variant: Variant, kind: string): readonly Manifest[] => objects(releases[variant], kind);
const one = (variant: Variant, kind: string, name?: string): Manifest =>
  object(releases[variant], kind, name);

interface Named {
  readonly name: string;
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}
interface Container extends Named {
  readonly image: string;
  readonly args?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: readonly (Named & { readonly value?: string })[];
  readonly volumeMounts: readonly (Named & { readonly mountPath: string })[];
  readonly securityContext: object;
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
}
interface Pod {
  readonly [field: string]: unknown;
  readonly serviceAccountName: string;
  readonly terminationGracePeriodSeconds?: number;
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly Named[];
}
interface Workload {
  readonly manifest: Manifest;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>> | undefined;
  readonly pod: Pod;
  readonly containers: readonly Container[];
}

function workloads(variant: Variant): readonly Workload[] {
  return releases[variant].manifests
    .filter(({ kind }) => ['StatefulSet', 'Deployment', 'Job'].includes(kind))
    .map((manifest) => {
      const { metadata, spec: pod } = manifest['spec'].template as {
        metadata: Manifest['metadata'];
        spec: Pod;
      };
      const containers = [...(pod.initContainers ?? []), ...pod.containers];
      return { manifest, labels: metadata.labels, annotations: metadata.annotations, pod, containers };
    });
}

function workload(variant: Variant, component: string): Workload {
  const found = workloads(variant).filter(
    ({ labels }) => labels['app.kubernetes.io/component'] === component,
  );
  expect(found, component).toHaveLength(1);
  return found[0]!;
}

const environmentOf = ({ env = [] }: Container): Readonly<Record<string, string>> =>
  Object.fromEntries(env.map(({ name, value = '' }) => [name, value]));

/** The parts of the values' schema that these tests read. */
interface SchemaNode {
  readonly type?: string | readonly string[];
  readonly $ref?: string;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
}

describe('with each option', () => {
  it.each(['1.29', '1.37'])('its objects are those of Kubernetes %s', async (version) => {
    await expect(validate(version, Object.values(releases))).resolves.toBeUndefined();
  });

  it.each([
    ['a field that there is not', { blob: {} }, 'blob'],
    ['a cluster without an object store', { mode: 'cluster' }, '/blobs/url'],
    ['a single node that scales', { node: { autoscaling } }, '/node/autoscaling/enabled'],
    ['another mode', { mode: 'many' }, '/mode'],
    ['values of a release that had no address, used again', { listenAddress: null }, 'listenAddress'],
  ])('a release is refused: %s', async (_fault, values, says) => {
    await expect(render(deploy, values)).rejects.toThrow(says);
  });

  it('each whole number arrives as one, however large it is', async () => {
    const schema = JSON.parse(read(`deploy/${chart}/values.schema.json`)) as SchemaNode & {
      readonly definitions: Readonly<Record<string, SchemaNode>>;
    };
    let numbers: number[] = [];
    const filled = (node: SchemaNode, hasOptions: boolean): unknown => {
      if (node.$ref !== undefined)
        return filled(schema.definitions[node.$ref.replace('#/definitions/', '')]!, hasOptions);
      if (node.type === 'boolean') return hasOptions;
      if ([node.type].flat().includes('integer')) {
        const number = Math.min(20_971_520 + numbers.length, node.maximum ?? Infinity);
        if (number !== node.maximum) numbers.push(number);
        return number;
      }
      if (node.properties === undefined) return undefined;
      return Object.fromEntries(
        Object.entries(node.properties).map(([name, inner]) => [name, filled(inner, hasOptions)]),
      );
    };
    const values = [false, true].map((hasOptions) => {
      numbers = [];
      const { node, ...others } = filled(schema, hasOptions) as { readonly node: object };
      const resources = { limits: { memory: 4_294_967_296 } };
      return { ...others, ...cluster, node: { ...node, resources } };
    });
    const texts = (await render(deploy, ...values)).map(({ text, notes }) => text + notes);
    const text = texts.join('');
    expect(text.match(/.*\d[eE]\+?\d.*/g)).toBeNull();
    expect(numbers.length).toBeGreaterThan(10);
    for (const number of [...numbers, 4_294_967_296]) expect(text).toContain(String(number));
  });

  it('each value is in values.yaml, with its default', () => {
    const unnamed = (schema: SchemaNode, values: unknown, at: string): readonly string[] =>
      Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
        const value = (values as Readonly<Record<string, unknown>>)[name];
        return value === undefined ? [`${at}/${name}`] : unnamed(inner, value, `${at}/${name}`);
      });
    const schema = JSON.parse(read(`deploy/${chart}/values.schema.json`)) as SchemaNode;
    // Helm gives `global` to every chart.
    expect(unnamed(schema, parse(read(`deploy/${chart}/values.yaml`)), '')).toEqual(['/global']);
  });
});

it('the image has one name in the chart, in compose.yaml and where it is built', () => {
  const { version } = JSON.parse(read('package.json')) as { readonly version: string };
  const image = `maxsimd:${version}`;
  for (const { containers } of workloads('cluster'))
    expect(containers.map((each) => each.image)).toEqual([image]);
  const compose = parse(read('deploy/compose.yaml'), { merge: true }) as {
    readonly services: Readonly<Record<string, { readonly image: string }>>;
  };
  for (const name of ['node-1', 'encoder', 'tools']) expect(compose.services[name]?.image).toBe(image);
  for (const file of ['deploy/docker/Dockerfile', `deploy/${chart}/values.yaml`, 'docs/guide/kubernetes.md'])
    expect(read(file), file).toContain(`docker build -f deploy/docker/Dockerfile -t ${image} .`);
});

describe.each(names)('the pods of %s', (variant) => {
  it('mount the volumes that they have, each at its place', () => {
    for (const { manifest, pod, containers } of workloads(variant)) {
      const claims = (manifest['spec'].volumeClaimTemplates ?? []) as readonly Manifest[];
      const volumes = [
        ...pod.volumes.map(({ name }) => name),
        ...claims.map(({ metadata }) => metadata.name),
      ];
      const mounted = containers.flatMap(({ volumeMounts }) => volumeMounts.map(({ name }) => name));
      expect(new Set(mounted)).toEqual(new Set(volumes));
      for (const { volumeMounts } of containers)
        expect(new Set(volumeMounts.map(({ mountPath }) => mountPath)).size).toBe(volumeMounts.length);
    }
  });

  it('have a data directory below a volume, as the volume belongs to root', () => {
    const directories = workloads(variant)
      .flatMap(({ containers }) => containers)
      .filter(({ volumeMounts }) => volumeMounts.some(({ name }) => name === 'data'))
      .map((container) => {
        const mount = container.volumeMounts.find(({ name }) => name === 'data')!.mountPath;
        return path.relative(mount, environmentOf(container)['MAXSIMD_DATA_DIR']!);
      });
    expect(new Set(directories)).toEqual(new Set(['data']));
  });

  it('may nothing, get no variables of Services and no token by default', () => {
    for (const { pod, containers } of workloads(variant)) {
      expect(pod).toMatchObject({ enableServiceLinks: false, automountServiceAccountToken: false });
      expect(pod['securityContext']).toEqual({
        runAsNonRoot: true,
        ...(variant === 'openShift' ? {} : { runAsUser: 10_001, runAsGroup: 10_001, fsGroup: 10_001 }),
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      });
      for (const { securityContext } of containers)
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    }
  });

  it('are found by what selects them', () => {
    const pods = workloads(variant).map(({ labels }) => labels);
    const selectors = releases[variant].manifests.flatMap(({ kind, spec }): readonly object[] => {
      if (kind === 'Service') return [spec.selector as object];
      if (kind === 'NetworkPolicy') return [spec.podSelector.matchLabels as object];
      return spec?.selector?.matchLabels === undefined || kind === 'ServiceMonitor'
        ? []
        : [spec.selector.matchLabels];
    });
    expect(selectors.length).toBeGreaterThan(3);
    for (const selector of selectors) {
      const component = (selector as Readonly<Record<string, string>>)['app.kubernetes.io/component'];
      const found = pods.filter((labels) =>
        Object.entries(selector).every(([name, value]) => labels[name] === value),
      );
      expect(found.map((labels) => labels['app.kubernetes.io/component'])).toEqual([component]);
    }
  });

  it('have until requests in flight are done, and files are closed', () => {
    const upsertMs = environmentOf(workload(variant, 'node').pod.containers[0]!)['MAXSIMD_TIMEOUT_UPSERT_MS'];
    for (const { manifest, pod } of workloads(variant).filter((each) => each.manifest.kind !== 'Job'))
      expect(pod.terminationGracePeriodSeconds, manifest.kind).toBeGreaterThanOrEqual(
        Number(upsertMs) / 1000 + 10,
      );
  });

  it('get what the program takes', () => {
    const node = environmentOf(workload(variant, 'node').pod.containers[0]!);
    const isCluster = all(variant, 'Deployment').length > 0;
    const secrets = { MAXSIMD_CATALOG_URL: 'postgres://a', MAXSIMD_LIMITER_URL: 'redis://a' };
    expect(() => parseConfig({ ...node, ...(isCluster ? secrets : {}) })).not.toThrow();
    if (!isCluster) return;
    const [word, ...options] = workload(variant, 'encoder').pod.containers[0]!.args ?? [];
    expect(word).toBe('encoder');
    const host = variant === 'openShift' ? '::' : '0.0.0.0';
    expect(node).toMatchObject({ MAXSIMD_HTTP_HOST: host, MAXSIMD_METRICS_HOST: host });
    expect(parseEncoderArguments(options).listen).toBe(`${host === '::' ? '[::]' : host}:50051`);
  });
});

describe('a single node', () => {
  it('is one pod with its encoder, and its volume stays', () => {
    expect(workloads('single')).toHaveLength(1);
    const { manifest, pod } = workload('single', 'node');
    expect(manifest['spec']).toMatchObject({
      replicas: 1,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    });
    const config = parseConfig(environmentOf(pod.containers[0]!));
    expect(config).toMatchObject({ MAXSIMD_ENCODERS: [], MAXSIMD_CATALOG_URL: '' });
    const [claim] = workload('singleMost', 'node').manifest['spec']
      .volumeClaimTemplates as readonly Manifest[];
    expect(claim!['spec']).toMatchObject({
      storageClassName: 'local',
      resources: { requests: { storage: '5Gi' } },
    });
  });

  it('starts with what the chart gives it, and answers its probes', async () => {
    const scratch = await makeScratch();
    // As Kubernetes leaves an empty volume, but for its owner.
    const volume = path.join(scratch.root, 'volume');
    await mkdir(volume);
    await chmod(volume, 0o2775);
    const [container] = workload('single', 'node').pod.containers;
    const given = Object.entries(environmentOf(container!)).map(([name, value]) => [
      name,
      value.replace('/var/lib/maxsimd', volume),
    ]);
    const env = { ...Object.fromEntries(given), MAXSIMD_HTTP_PORT: '0' } as Record<string, string>;
    const server = await startServer({ scratch, env, metrics: true });
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
      const { port, path: route } = container![probe].httpGet;
      expect(port).toBe('http');
      expect((await fetch(new URL(route, server.url))).status, probe).toBe(200);
    }
    expect(await server.stop()).toEqual({ code: 0, signal: null });
    expect(await readdir(path.join(volume, 'data'))).toContain('first-api-key');
  });

  it('finds models of its own in their volume', () => {
    const [container] = workload('singleMost', 'node').pod.containers;
    expect(environmentOf(container!)['MAXSIMD_MODELS_DIR']).toBe('/models');
    expect(container!.volumeMounts).toContainEqual({ name: 'models', mountPath: '/models', readOnly: true });
  });
});

describe('a cluster', () => {
  it('finds its encoders by a name that has the address of each', () => {
    const service = one('cluster', 'Service', 'release-encoder');
    expect(service['spec']).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: true });
    const { MAXSIMD_ENCODERS: encoders } = environmentOf(workload('cluster', 'node').pod.containers[0]!);
    expect(encoders).toBe(`dns:///${service.metadata.name}:${service['spec'].ports[0].port}`);
  });

  it('scales what it has, and then states no number', () => {
    const scaled = all('clusterMost', 'HorizontalPodAutoscaler');
    expect(scaled).toHaveLength(2);
    for (const { spec } of scaled) {
      expect(spec).toMatchObject({ minReplicas: 2, maxReplicas: 5 });
      const { apiVersion, kind, name } = spec.scaleTargetRef as Named & { apiVersion: string; kind: string };
      const target = one('clusterMost', kind, name);
      expect(target.apiVersion).toBe(apiVersion);
      expect(target['spec'].replicas).toBeUndefined();
    }
    expect(all('cluster', 'HorizontalPodAutoscaler')).toEqual([]);
    expect(workload('cluster', 'node').manifest['spec'].replicas).toBe(3);
  });

  it('gives encoders models of its own', () => {
    const [container] = workload('clusterMost', 'encoder').pod.containers;
    expect(container!.args).toContain('--model-dir=/models/own/1');
    expect(container!.volumeMounts).toContainEqual({ name: 'models', mountPath: '/models', readOnly: true });
  });
});

it.each([
  ['singleMost', 'node'],
  ['clusterMost', 'node'],
  ['clusterMost', 'encoder'],
] as const)('pods of %s (%s) are placed and marked as the values say', (variant, component) => {
  const { podAnnotations, podLabels, ...places } = placed;
  const { pod, labels, annotations } = workload(variant, component);
  expect(pod).toMatchObject(places);
  expect(labels).toMatchObject(podLabels);
  expect(annotations).toEqual(podAnnotations);
});

it('an Ingress leads to the Service', () => {
  const { spec } = one('clusterMost', 'Ingress');
  const [rule] = spec.rules;
  expect(rule.host).toBe('a.example');
  expect(spec.tls).toEqual([{ secretName: 'tls', hosts: ['a.example'] }]);
  const { name, port } = rule.http.paths[0].backend.service;
  const service = one('clusterMost', 'Service', name);
  expect((service['spec'].ports as readonly Named[]).map((each) => each.name)).toContain(port.name);
});

describe('the first tenant', () => {
  it.each([
    ['singleMost', 'node', 'release', 'release-first-tenant'],
    ['clusterMost', 'first-tenant', 'release-first-tenant', 'release-first-tenant'],
    ['ownAccount', 'node', 'mine', 'key'],
  ] as const)(
    'of %s is made by an account that may use one Secret',
    (variant, component, account, secret) => {
      const { pod, containers } = workload(variant, component);
      expect(pod.serviceAccountName).toBe(account);
      const makers = containers.filter(({ command = [] }) =>
        command.includes('/opt/maxsimd/first-tenant.mjs'),
      );
      expect(makers.map(({ command }) => command?.[2])).toEqual([secret]);
      const token = '/var/run/secrets/kubernetes.io/serviceaccount';
      const holders = containers.filter(({ volumeMounts }) =>
        volumeMounts.some(({ mountPath }) => mountPath === token),
      );
      expect(holders).toEqual(makers);
      expect(one(variant, 'Role', 'release-first-tenant')['rules']).toEqual([
        { apiGroups: [''], resources: ['secrets'], resourceNames: [secret], verbs: ['get', 'patch'] },
      ]);
      const { roleRef, subjects } = one(variant, 'RoleBinding', 'release-first-tenant');
      expect(roleRef).toMatchObject({ kind: 'Role', name: 'release-first-tenant' });
      expect(subjects).toEqual([{ kind: 'ServiceAccount', name: account, namespace: 'default' }]);
      expect(one(variant, 'Secret', secret).metadata.annotations).toEqual({
        'helm.sh/resource-policy': 'keep',
      });
      if (account !== 'mine') one(variant, 'ServiceAccount', account);
    },
  );

  it('of a cluster has a pod that is marked as the values say', () => {
    const { labels, annotations } = workload('clusterMost', 'first-tenant');
    expect(labels['sidecar.istio.io/inject']).toBe('false');
    expect(annotations).toEqual({ note: 'job' });
  });

  it('is made by a hook in a cluster, and not at all unless it is asked for', () => {
    expect(one('clusterMost', 'Job', 'release-first-tenant').metadata.annotations).toMatchObject({
      'helm.sh/hook': 'post-install,post-upgrade',
    });
    for (const variant of ['single', 'cluster'] as const)
      expect([...all(variant, 'Secret'), ...all(variant, 'Role'), ...all(variant, 'Job')]).toEqual([]);
  });

  it.each([
    ['single', 'cat /var/lib/maxsimd/data/first-api-key'],
    ['cluster', 'exec release-0 -- /opt/maxsimd/entrypoint.sh tenant create --name first'],
    ['clusterMost', 'get secret release-first-tenant'],
    ['ownAccount', 'get secret key '],
  ] as const)('of %s is in the notes', (variant, says) => {
    expect(releases[variant].notes).toContain(says);
  });
});
