/**
 * Every file of `deploy/` is looked at by the program that it is for, or by a linter, and each of these finds a fault that
 * was put in. What nodes and encoders are given there is what they take.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { run } from '../../clients/tools/install.ts';
import { installChecks, installServers, type CheckPrograms } from '../../deploy/local/install.ts';
import { alerts } from '../../deploy/monitoring/alerts.ts';
import { parseConfig } from '../../src/app/config.ts';
import { parseEncoderArguments } from '../../src/encoder/server/arguments.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { nginxIn } from './nginx-sample.ts';

const root = path.resolve(import.meta.dirname, '../..');
const deploy = path.join(root, 'deploy');
const chart = 'helm/maxsimd';

let programs: CheckPrograms & { readonly haproxy: string };
beforeAll(async () => {
  programs = { ...(await installChecks()), ...(await installServers()) };
}, 600_000);

const tool = (name: string): string => path.join(programs.python, name);

/** A copy of `deploy/` in which one text of one file is another. */
async function copyOf(fault?: { readonly file: string; readonly of: string; readonly by: string }) {
  const copy = path.join(await newDirectory(), 'deploy');
  cpSync(deploy, copy, { recursive: true, filter: (file) => !file.startsWith(path.join(deploy, 'secrets')) });
  if (fault !== undefined) {
    const file = path.join(copy, fault.file);
    const text = readFileSync(file, 'utf8');
    expect(text).toContain(fault.of);
    writeFileSync(file, text.replace(fault.of, fault.by));
  }
  return copy;
}

const fewest = { blobs: { url: 's3://bucket/prefix' } };
/** Everything that is off. */
const most = {
  blobs: { ...fewest.blobs, endpoint: 'https://store.example', credentialsSecretName: 'store' },
  authoritiesSecretName: 'authorities',
  operatorsSecretName: 'operators',
  imagePullSecrets: [{ name: 'registry' }],
  serviceAccount: { annotations: { role: 'maxsimd' } },
  service: { annotations: { internal: 'true' } },
  node: {
    environment: { MAXSIMD_LOG_LEVEL: 'warn' },
    nodeSelector: { disk: 'nvme' },
    tolerations: [{ key: 'disk', operator: 'Exists' }],
    cache: { storageClass: 'local' },
  },
  encoder: { nodeSelector: { gpu: 'yes' }, tolerations: [{ key: 'gpu', operator: 'Exists' }] },
  networkPolicy: { clients: [{ podSelector: {} }], scrapers: [{ namespaceSelector: {} }] },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
};

async function render(folder: string, values: object): Promise<string> {
  const file = path.join(await newDirectory(), 'values.json');
  writeFileSync(file, JSON.stringify(values));
  return run(
    tool('python'),
    [path.join(import.meta.dirname, 'render.py'), path.join(folder, chart), file],
    root,
  );
}

/** By the schemas of the oldest version that the chart takes, and of the newest that there are. */
async function checkChart(folder: string): Promise<void> {
  for (const [version, values] of [
    ['1.29', fewest],
    ['1.37', most],
  ] as const)
    await checkRendered(folder, version, values);
}

async function checkRendered(folder: string, version: string, values: object): Promise<void> {
  const file = path.join(await newDirectory(), 'manifests.yaml');
  writeFileSync(file, await render(folder, values));
  await run(tool('kubernetes-validate'), ['--strict', '--quiet', '--no-warn', '-k', version, file], root);
}

/** In place of `/opt/maxsimd`, a folder with programs: they must be there. */
async function checkUnits(folder: string): Promise<void> {
  const installed = path.join(folder, 'installed');
  mkdirSync(path.join(installed, 'node_modules/.bin'), { recursive: true });
  writeFileSync(path.join(installed, 'node_modules/.bin/maxsimd'), '#!/bin/sh\n', { mode: 0o755 });
  for (const [unit, name] of [
    ['maxsimd-node@.service', 'maxsimd-node@8081.service'],
    ['maxsimd-encoder.service', 'maxsimd-encoder.service'],
  ] as const) {
    const text = readFileSync(path.join(folder, 'systemd', unit), 'utf8');
    const file = path.join(folder, name);
    writeFileSync(file, text.replaceAll('/opt/maxsimd', installed));
    if (unit.startsWith('maxsimd-node')) {
      mkdirSync(`${file}.d`);
      cpSync(path.join(folder, 'systemd/maxsimd-node-admin.conf'), `${file}.d/admin.conf`);
    }
    // It exits with 0 where it does not know a setting.
    const command = `${programs.systemdAnalyze} verify --man=no ${file} 2>&1`;
    const found = await run('sh', ['-c', command], folder);
    if (found !== '') throw new Error(found);
    // In tenths: 20 is 2.0, of 10.
    await run(programs.systemdAnalyze, ['security', '--offline=true', '--threshold=20', file], folder);
  }
}

interface Check {
  readonly file: string;
  readonly run: (folder: string) => Promise<unknown>;
  readonly of: string;
  readonly by: string;
  /** What it says then. */
  readonly says: string;
}

const checks: readonly Check[] = [
  {
    file: 'docker/Dockerfile',
    run: (folder) => run(tool('hadolint'), [path.join(folder, 'docker/Dockerfile')], folder),
    of: ' --no-install-recommends',
    by: '',
    says: 'DL3015',
  },
  {
    file: 'docker/entrypoint.sh',
    run: (folder) => run('sh', ['-n', path.join(folder, 'docker/entrypoint.sh')], folder),
    of: '\nfi',
    by: '\n',
    says: 'Syntax error',
  },
  {
    file: 'compose.yaml',
    run: (folder) =>
      run(tool('docker-compose'), ['-f', path.join(folder, 'compose.yaml'), 'config', '-q'], folder),
    of: 'stop_signal:',
    by: 'stop_signl:',
    says: 'stop_signl',
  },
  {
    file: `${chart}/templates/nodes.yaml`,
    run: checkChart,
    of: 'serviceName:',
    by: 'serviceNme:',
    says: "'serviceName' is a required property",
  },
  {
    file: `${chart}/values.yaml`,
    run: (folder) => render(folder, fewest),
    of: 'replicas: 3',
    by: 'replicas: three',
    says: '/node/replicas',
  },
  {
    file: 'systemd/maxsimd-node@.service',
    run: checkUnits,
    of: 'ProtectSystem',
    by: 'ProtectSytem',
    says: 'ProtectSytem',
  },
  {
    file: 'systemd/maxsimd-node-admin.conf',
    run: checkUnits,
    of: 'LoadCredential',
    by: 'LoadCredentail',
    says: 'LoadCredentail',
  },
  {
    file: 'systemd/maxsimd-encoder.service',
    run: checkUnits,
    of: 'NoNewPrivileges=yes',
    by: 'Nice=99',
    says: 'Nice',
  },
  {
    file: 'haproxy/haproxy.cfg',
    run: (folder) => run(programs.haproxy, ['-c', '-f', path.join(folder, 'haproxy/haproxy.cfg')], folder),
    of: 'balance hash',
    by: 'balance hsh',
    says: 'balance',
  },
  {
    file: 'nginx/nginx.conf',
    run: (folder) => {
      const file = path.join(folder, 'nginx/nginx.conf');
      writeFileSync(file, nginxIn(folder, readFileSync(file, 'utf8')));
      return run(programs.nginx, ['-t', '-c', file, '-e', 'stderr'], folder);
    },
    of: 'consistent;',
    by: 'consistently;',
    says: 'consistently',
  },
  {
    file: 'envoy/envoy.yaml',
    run: (folder) =>
      run(tool('envoy'), ['--mode', 'validate', '-c', path.join(folder, 'envoy/envoy.yaml')], folder),
    of: 'num_retries',
    by: 'number_retries',
    says: 'number_retries',
  },
];

describe.each(checks)('deploy/$file', ({ file, run: check, of, by, says }) => {
  it('is well', async () => {
    await expect(check(await copyOf())).resolves.not.toThrow();
  });

  it('is refused with a fault in it', async () => {
    await expect(check(await copyOf({ file, of, by }))).rejects.toThrow(says);
  });
});

it('every file of deploy/ has its row in the table of what was run and what was not', () => {
  const table = readFileSync(path.join(deploy, 'README.md'), 'utf8');
  const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', 'deploy'], {
    cwd: root,
    encoding: 'utf8',
  });
  const parts = new Set(
    tracked
      .split('\n')
      .filter((file) => file !== '' && file !== 'deploy/README.md')
      .map((file) =>
        file
          .split('/')
          .slice(1, file.startsWith('deploy/docker/') ? 3 : 2)
          .join('/'),
      ),
  );
  expect(parts.size).toBeGreaterThan(8);
  for (const part of parts) expect(table).toContain(`| [${part}](${part})`);
});

/** What the chart renders, by kind. */
async function manifests<Manifest>(values: object, kind: string): Promise<readonly Manifest[]> {
  return parseAllDocuments(await render(deploy, values))
    .map((document) => document.toJS() as { readonly kind: string } | null)
    .filter((manifest) => manifest?.kind === kind) as unknown as readonly Manifest[];
}

interface Pod {
  readonly enableServiceLinks?: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly Container[];
}

/** Those of the encoders, then those of the nodes. */
async function podsOf(values: object): Promise<readonly Pod[]> {
  const sets = await manifests<{ readonly spec: { readonly template: { readonly spec: Pod } } }>(
    values,
    'StatefulSet',
  );
  return sets.map(({ spec }) => spec.template.spec);
}

describe('the chart', () => {
  it('takes the values of examples/kubernetes', async () => {
    const values: unknown = parse(readFileSync(path.join(root, 'examples/kubernetes/values.yaml'), 'utf8'));
    await checkRendered(deploy, '1.37', values as object);
    const wrong = { ...(values as object), blob: {} };
    await expect(checkRendered(deploy, '1.37', wrong)).rejects.toThrow('blob');
  });

  it('keeps the variables of Services from its pods', async () => {
    const pods = await podsOf(fewest);
    expect(pods).toHaveLength(2);
    for (const pod of pods) expect(pod.enableServiceLinks).toBe(false);
  });

  interface Policy {
    readonly metadata: { readonly name: string };
    readonly spec: {
      readonly ingress: readonly {
        readonly ports: readonly { readonly port: string }[];
        readonly from?: unknown;
      }[];
    };
  }

  it.each([
    ['nobody', {}, undefined],
    [
      'the Prometheus of a ServiceMonitor',
      { serviceMonitor: { enabled: true } },
      [
        {
          namespaceSelector: {},
          podSelector: { matchLabels: { 'app.kubernetes.io/managed-by': 'prometheus-operator' } },
        },
      ],
    ],
    [
      'those that are named, and no others',
      { serviceMonitor: { enabled: true }, networkPolicy: { scrapers: most.networkPolicy.scrapers } },
      most.networkPolicy.scrapers,
    ],
  ])('lets %s read metrics', async (_who, values, from) => {
    const policies = await manifests<Policy>({ ...fewest, ...values }, 'NetworkPolicy');
    const rule = policies
      .find(({ metadata }) => metadata.name === 'release-node')
      ?.spec.ingress.find(({ ports }) => ports[0]?.port === 'metrics');
    expect(rule?.from).toEqual(from);
  });

  it('gives its nodes the job that the alerts look for', async () => {
    const values = { ...fewest, serviceMonitor: { enabled: true } };
    interface Labelled {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
    }
    const [monitor] = await manifests<{
      readonly spec: {
        readonly jobLabel: string;
        readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
      };
    }>(values, 'ServiceMonitor');
    const services = (await manifests<Labelled>(values, 'Service')).filter(({ metadata: { labels } }) =>
      Object.entries(monitor!.spec.selector.matchLabels).every(([name, value]) => labels[name] === value),
    );
    expect(services).toHaveLength(1);
    const down = alerts.find(({ name }) => name === 'MaxsimdDown')!.expression;
    const [, job] = /job="([^"]+)"/.exec(down) ?? [];
    expect(services[0]?.metadata.labels[monitor!.spec.jobLabel]).toBe(job);
  });
});

describe('who stops nodes and encoders waits until requests in flight are done, and files are closed', () => {
  const secondsLeast = parseConfig({}).MAXSIMD_TIMEOUT_UPSERT_MS / 1_000 + 10;

  it('in compose.yaml', async () => {
    const args = ['-f', path.join(deploy, 'compose.yaml'), 'config', '--format', 'json'];
    const { services } = JSON.parse(await run(tool('docker-compose'), args, root)) as {
      readonly services: Readonly<Record<string, { readonly stop_grace_period?: string }>>;
    };
    for (const name of ['node-1', 'node-2', 'node-3', 'encoder']) {
      const [, minutes, seconds] = /^(\d+)m(\d+)s$/.exec(services[name]?.stop_grace_period ?? '') ?? [];
      expect(Number(minutes) * 60 + Number(seconds), name).toBeGreaterThanOrEqual(secondsLeast);
    }
  });

  it.each(['maxsimd-node@.service', 'maxsimd-encoder.service'])('in %s', (unit) => {
    const text = readFileSync(path.join(deploy, 'systemd', unit), 'utf8');
    const [, seconds] = /^TimeoutStopSec=(\d+)s$/m.exec(text) ?? [];
    expect(Number(seconds)).toBeGreaterThanOrEqual(secondsLeast);
  });

  it('in the chart', async () => {
    for (const { terminationGracePeriodSeconds: seconds } of await podsOf(fewest))
      expect(seconds).toBeGreaterThanOrEqual(secondsLeast);
    const [, node] = await podsOf({ ...fewest, node: { drainSeconds: 300 } });
    expect(node?.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(310);
  });
});

it('the image runs its program under an init', () => {
  const dockerfile = readFileSync(path.join(deploy, 'docker/Dockerfile'), 'utf8');
  expect(dockerfile).toMatch(/^ENTRYPOINT \["\/usr\/bin\/tini", "-s", "--", /m);
  expect(dockerfile.split('\nFROM ').at(-1)).toContain(' tini ');
});

interface Container {
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

describe('what nodes and encoders are given', () => {
  const secrets = { MAXSIMD_CATALOG_URL: 'postgres://a', MAXSIMD_LIMITER_URL: 'redis://a' };

  it('by compose.yaml is what they take', async () => {
    const file = path.join(deploy, 'compose.yaml');
    const args = ['-f', file, '--profile', 'tools', 'config', '--format', 'json'];
    const { services } = JSON.parse(await run(tool('docker-compose'), args, root)) as {
      readonly services: Readonly<
        Record<string, { readonly environment?: Record<string, string>; readonly command: readonly string[] }>
      >;
    };
    for (const name of ['node-1', 'node-2', 'node-3', 'tools'])
      expect(() => parseConfig({ ...services[name]?.environment, ...secrets })).not.toThrow();
    const [word, ...options] = services['encoder']?.command ?? [];
    expect(word).toBe('encoder');
    expect(() => parseEncoderArguments(options)).not.toThrow();
  });

  it('by the chart is what they take', async () => {
    const [encoder, node] = (await podsOf(most)).flatMap(({ containers }) => containers);
    const environment = Object.fromEntries((node?.env ?? []).map(({ name, value = '' }) => [name, value]));
    expect(environment).toMatchObject({
      MAXSIMD_LOG_LEVEL: 'warn',
      MAXSIMD_ADMIN_PORT: '9465',
      MAXSIMD_ENCODERS: 'release-encoder-0.release-encoder:50051,release-encoder-1.release-encoder:50051',
    });
    expect(() => parseConfig({ ...environment, ...secrets })).not.toThrow();
    const [word, ...options] = encoder?.args ?? [];
    expect(word).toBe('encoder');
    expect(() => parseEncoderArguments(options)).not.toThrow();
  });

  it('by the units is what they take', () => {
    const lines = (unit: string): string =>
      readFileSync(path.join(deploy, 'systemd', unit), 'utf8')
        .replaceAll('\\\n', '')
        .replaceAll('%i', '8081');
    const assigned = ['maxsimd-node@.service', 'maxsimd-node-admin.conf'].flatMap((unit) =>
      [...lines(unit).matchAll(/^Environment=(.+)$/gm)].flatMap(([, pairs = '']) =>
        pairs.split(' ').map((pair) => pair.split('=') as [string, string]),
      ),
    );
    const shared = { MAXSIMD_BLOBS_URL: 's3://bucket/prefix', ...secrets };
    const config = parseConfig({ ...Object.fromEntries(assigned), ...shared });
    expect(config).toMatchObject({
      MAXSIMD_HTTP_PORT: 8081,
      MAXSIMD_METRICS_PORT: 18081,
      MAXSIMD_ADMIN_PORT: 28081,
    });
    const [, options = ''] = /^ExecStart=.*main\.js (.+)$/m.exec(lines('maxsimd-encoder.service')) ?? [];
    expect(() => parseEncoderArguments(options.trim().split(/ +/))).not.toThrow();
  });
});

it('the secrets for compose.yaml are all that it names, and are made once', async () => {
  const folder = path.join(await newDirectory(), 'secrets');
  const script = path.join(deploy, 'docker/make-secrets.sh');
  await run('sh', [script, folder], root);
  const compose = readFileSync(path.join(deploy, 'compose.yaml'), 'utf8');
  const named = [...compose.matchAll(/file: secrets\/([\w.-]+)/g)].map(([, name = '']) => name);
  expect(named).toHaveLength(7);
  for (const name of named) expect(readFileSync(path.join(folder, name)).length).toBeGreaterThan(0);
  expect(readFileSync(path.join(folder, 'key-pepper'))).toHaveLength(32);
  const store = JSON.parse(readFileSync(path.join(folder, 'seaweedfs.json'), 'utf8')) as {
    readonly identities: readonly { readonly credentials: readonly { readonly secretKey: string }[] }[];
  };
  const secret = store.identities[0]?.credentials[0]?.secretKey;
  expect(readFileSync(path.join(folder, 'aws-credentials'), 'utf8')).toContain(
    `aws_secret_access_key = ${secret}`,
  );
  await expect(run('sh', [script, folder], root)).rejects.toThrow('its secrets are in use');
});
