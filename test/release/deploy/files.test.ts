/**
 * Every file of `deploy/` is looked at by the program that it is for, or by a linter, and each of these finds a fault that
 * was put in. What nodes and encoders are given there is what they take.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../../clients/tools/install.ts';
import { installChecks, installServers, type CheckPrograms } from '../../../deploy/local/install.ts';
import { parseConfig } from '../../../src/app/config.ts';
import { parseEncoderArguments } from '../../../src/encoder/server/arguments.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { chart, deploy, render, validate } from './chart.ts';

const root = path.resolve(import.meta.dirname, '../../..');

let programs: CheckPrograms & { readonly haproxy: string };
beforeAll(async () => {
  programs = { ...(await installChecks()), ...(await installServers()) };
});

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

/** In place of `/opt/maxsimd`, a folder with programs: they must be there. */
async function checkUnits(folder: string): Promise<void> {
  const installed = path.join(folder, 'installed');
  mkdirSync(path.join(installed, 'node_modules/.bin'), { recursive: true });
  writeFileSync(path.join(installed, 'node_modules/.bin/maxsimd'), '#!/bin/sh\n', { mode: 0o755 });
  for (const [unit, name] of [
    ['maxsimd-node@.service', 'maxsimd-node@8081.service'],
    ['maxsimd-encoder.service', 'maxsimd-encoder.service'],
    ['maxsimd.service', 'maxsimd.service'],
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
    // It also reads the units of this machine, which are not ours.
    const ours = found.split('\n').filter((line) => line !== '' && !/^(\/usr)?\/lib\/systemd\//.test(line));
    if (ours.length > 0) throw new Error(ours.join('\n'));
    // In tenths: 20 is 2.0, of 10.
    await run(programs.systemdAnalyze, ['security', '--offline=true', '--threshold=20', file], folder);
  }
}

interface Check {
  readonly file: string;
  readonly run: (folder: string) => Promise<unknown>;
  readonly of: string;
  readonly by: string;
  /** The message that the check gives for such a file. */
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
    file: 'single-node/compose.yaml',
    run: (folder) =>
      run(
        tool('docker-compose'),
        ['-f', path.join(folder, 'single-node/compose.yaml'), 'config', '-q'],
        folder,
      ),
    of: 'healthcheck:',
    by: 'healthchek:',
    says: 'healthchek',
  },
  {
    file: `${chart}/templates/nodes.yaml`,
    run: async (folder) => validate('1.29', await render(folder, {})),
    of: 'serviceName:',
    by: 'serviceNme:',
    says: "'serviceName' is a required property",
  },
  {
    file: `${chart}/values.yaml`,
    run: (folder) => render(folder, {}),
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
    file: 'systemd/maxsimd.service',
    run: checkUnits,
    of: 'StateDirectoryMode',
    by: 'StateDirectoryMod',
    says: 'StateDirectoryMod',
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

describe('who stops nodes and encoders waits until requests in flight are done, and files are closed', () => {
  const secondsLeast = parseConfig({}).MAXSIMD_TIMEOUT_UPSERT_MS / 1_000 + 10;

  it.each([
    ['compose.yaml', ['node-1', 'node-2', 'node-3', 'encoder']],
    ['single-node/compose.yaml', ['maxsimd']],
  ] as const)('in %s', async (file, names) => {
    const args = ['-f', path.join(deploy, file), 'config', '--format', 'json'];
    const { services } = JSON.parse(await run(tool('docker-compose'), args, root)) as {
      readonly services: Readonly<Record<string, { readonly stop_grace_period?: string }>>;
    };
    for (const name of names) {
      const [, minutes, seconds] = /^(\d+)m(\d+)s$/.exec(services[name]?.stop_grace_period ?? '') ?? [];
      expect(Number(minutes) * 60 + Number(seconds), name).toBeGreaterThanOrEqual(secondsLeast);
    }
  });

  it.each(['maxsimd-node@.service', 'maxsimd-encoder.service', 'maxsimd.service'])('in %s', (unit) => {
    const text = readFileSync(path.join(deploy, 'systemd', unit), 'utf8');
    const [, seconds] = /^TimeoutStopSec=(\d+)s$/m.exec(text) ?? [];
    expect(Number(seconds)).toBeGreaterThanOrEqual(secondsLeast);
  });
});

it('the image runs its program under an init', () => {
  const dockerfile = readFileSync(path.join(deploy, 'docker/Dockerfile'), 'utf8');
  expect(dockerfile).toMatch(/^ENTRYPOINT \["\/usr\/bin\/tini", "-s", "--", /m);
  expect(dockerfile.split('\nFROM ').at(-1)).toContain(' tini ');
});

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
    const alone = ['-f', path.join(deploy, 'single-node/compose.yaml'), 'config', '--format', 'json'];
    const single = JSON.parse(await run(tool('docker-compose'), alone, root)) as {
      readonly services: { readonly maxsimd: { readonly environment: Record<string, string> } };
    };
    expect(() => parseConfig(single.services.maxsimd.environment)).not.toThrow();
    const [word, ...options] = services['encoder']?.command ?? [];
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
