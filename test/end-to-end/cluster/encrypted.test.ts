/** TLS and credentials to what nodes share, with real servers and certificates made here. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, chown, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { RunningPostgres } from '../../../deploy/local/postgres.ts';
import type { RunningRedis } from '../../../deploy/local/redis.ts';
import type { RunningSeaweed } from '../../../deploy/local/seaweedfs.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { makeAuthority, type Certificate } from '../../support/cluster/certificates.ts';
import {
  queryDatabase,
  serversMs,
  startTestPostgres,
  startTestRedis,
  startTestSeaweed,
} from '../../support/cluster/servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { connect } from '../../support/running/client.ts';
import { entryPoint, launchServer } from '../../support/running/launch.ts';
import { readMetric, startServer } from '../../support/running/server.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';

let postgres: RunningPostgres;
let redis: RunningRedis;
let seaweed: RunningSeaweed;
let trusted: string;
let foreign: string;
let client: Certificate;
let environment: Readonly<Record<string, string>>;
const keyPepper = randomBytes(32);

/** Who connects to this database shows a certificate, too; nobody connects to any without TLS. */
const certified = 'certified';
const accessRules = `
hostssl ${certified} all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
hostssl all all 127.0.0.1/32 scram-sha-256
`;

beforeAll(async () => {
  const directory = await newDirectory();
  await chmod(directory, 0o755);
  const authority = await makeAuthority(directory, 'authority');
  const other = await makeAuthority(directory, 'another-authority');
  [trusted, foreign] = [authority.cert, other.cert];
  const server = await authority.sign('server');
  client = await authority.sign('client');
  const rules = path.join(directory, 'access-rules');
  await writeFile(rules, accessRules);
  // PostgreSQL reads its key as the user that it runs as, and wants it to be closed to others.
  const postgresServer = await authority.sign('postgres');
  if (process.getuid?.() === 0) {
    const nobody = await promisify(execFile)('id', ['-u', 'nobody']);
    await chown(postgresServer.key, Number(nobody.stdout), 0);
  }
  [postgres, redis, seaweed] = await Promise.all([
    startTestPostgres({
      ssl: 'on',
      ssl_cert_file: postgresServer.cert,
      ssl_key_file: postgresServer.key,
      ssl_ca_file: trusted,
      hba_file: rules,
    }),
    startTestRedis((port) => ({
      port: '0',
      'tls-port': String(port),
      'tls-cert-file': server.cert,
      'tls-key-file': server.key,
      'tls-ca-cert-file': trusted,
      'tls-auth-clients': 'no',
    })),
    startTestSeaweed({ tls: { ...server, ca: trusted } }),
  ]);
  await queryDatabase(`${postgres.url}?sslmode=no-verify`, `CREATE DATABASE ${certified}`);
  const pepper = path.join(directory, 'pepper');
  await writeFile(pepper, keyPepper, { mode: 0o600 });
  environment = {
    ...seaweed.environment,
    NODE_EXTRA_CA_CERTS: trusted,
    MAXSIMD_CATALOG_URL: `${postgres.url}?sslmode=verify-full&sslrootcert=${trusted}`,
    MAXSIMD_BLOBS_URL: `s3://${seaweed.bucket}/indexes`,
    MAXSIMD_LIMITER_URL: secureRedis(),
    MAXSIMD_KEY_PEPPER_FILE: pepper,
  };
}, serversMs);
afterAll(() => Promise.all([postgres.stop(), redis.stop(), seaweed.stop()]));

function secureRedis(change: (url: URL) => void = () => undefined): string {
  const url = new URL(redis.url.replace('redis:', 'rediss:'));
  url.username = 'default';
  change(url);
  return url.href;
}

it('a node serves over TLS to all that it shares, and without Redis', async () => {
  const node = await startServer({ env: environment, metrics: true });
  const create = [entryPoint, 'tenant', 'create', '--name', 'tenant', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, create, {
    env: { ...process.env, ...environment },
  });
  const { api_key: apiKey } = z.object({ api_key: z.string() }).parse(JSON.parse(stdout));
  const one = connect(node.url, apiKey);
  const { id } = await makeIndex(one);
  await put(one, id, [{ doc_id: 'd', text: 'a short text' }]);
  const { results } = await find(one, id, { query: 'short' });
  expect(results.map(({ doc_id: docId }) => docId)).toEqual(['d']);
  const ready = await (await fetch(`${node.url}/readyz`)).text();
  expect(ready).toContain('"limiter":"ok"');
  expect(ready).toContain('"objects":"ok"');
  const connections = await queryDatabase(
    `${postgres.url}?sslmode=no-verify`,
    `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'maxsimd'`,
  );
  expect(connections).toEqual([{ ssl: true }]);

  const fallback = (): Promise<number> => readMetric(node, 'maxsimd_cluster_limiter_fallback');
  expect(await fallback()).toBe(0);
  await redis.stop();
  // A share begins as if it had just been used.
  await expect.poll(async () => (await one.search(id, { query: 'short' })).status).toBe(200);
  expect(await fallback()).toBe(1);
  await expect
    .poll(async () => {
      const answer = await fetch(`${node.url}/readyz`);
      return `${answer.status} ${await answer.text()}`;
    })
    .toMatch(/^200 .*"limiter":"degraded: /);
  await redis.start();
  await expect.poll(fallback).toBe(0);
  await node.stop();
});

it('a start that Redis refuses takes nothing from the shares of the nodes that serve', async () => {
  const url = secureRedis((address) => (address.password = 'wrong'));
  const launch = await launchServer({ env: { ...environment, MAXSIMD_LIMITER_URL: url } });
  expect((await launch.exited).code).toBeGreaterThan(0);
  expect(await queryDatabase(`${postgres.url}?sslmode=no-verify`, 'SELECT name FROM nodes')).toEqual([]);
});

describe('a start is refused, says why, and prints no secret', () => {
  const wrong = 'not-the-password';
  it.concurrent.each<[string, () => Readonly<Record<string, string>>, RegExp]>([
    [
      'PostgreSQL with another password',
      () => ({ MAXSIMD_CATALOG_URL: withPassword(environment['MAXSIMD_CATALOG_URL']!, wrong) }),
      /the catalog cannot be reached: it refuses the user, the password/,
    ],
    [
      'an object store of another authority',
      () => ({ NODE_EXTRA_CA_CERTS: foreign }),
      /the object store cannot be reached: it has a certificate of an authority that this program does not trust/,
    ],
    [
      'an object store with other keys',
      () => ({ AWS_SECRET_ACCESS_KEY: wrong }),
      /the object store cannot be reached: it refuses the keys/,
    ],
    [
      'Redis under another name',
      () => ({ MAXSIMD_LIMITER_URL: secureRedis((url) => (url.hostname = 'localhost')) }),
      /the limiter cannot be used: it has a certificate for another host/,
    ],
    [
      'Redis with another password',
      () => ({ MAXSIMD_LIMITER_URL: secureRedis((url) => (url.password = wrong)) }),
      /the limiter cannot be used: it refuses the user or the password/,
    ],
  ])('%s', async (_what, changed, message) => {
    const launch = await launchServer({ env: { ...environment, ...changed() } });
    const { code } = await launch.exited;
    const { stdout, stderr } = launch.output();
    expect(stderr).toMatch(message);
    expect(code).toBeGreaterThan(0);
    const secrets = [
      wrong,
      new URL(postgres.url).password,
      new URL(redis.url).password,
      seaweed.environment['AWS_SECRET_ACCESS_KEY']!,
    ];
    for (const secret of secrets) expect(stdout + stderr).not.toContain(secret);
    await launch.scratch.remove();
  });
});

describe('sslmode means what it means to PostgreSQL', () => {
  const open = async (url: string): Promise<string> => {
    try {
      await (await openPostgresCatalog({ url, keyPepper })).close();
      return 'opened';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const elsewhere = (): string => postgres.url.replace('127.0.0.1', 'localhost');

  it.each<[string, () => string, string | RegExp]>([
    ['no TLS', () => postgres.url, /or a connection without TLS/],
    ['require', () => `${postgres.url}?sslmode=require`, 'opened'],
    ['verify-ca', () => `${elsewhere()}?sslmode=verify-ca&sslrootcert=${trusted}`, 'opened'],
    [
      'verify-ca of another authority',
      () => `${postgres.url}?sslmode=verify-ca&sslrootcert=${foreign}`,
      /this program does not trust/,
    ],
    ['verify-full', () => `${postgres.url}?sslmode=verify-full&sslrootcert=${trusted}`, 'opened'],
    [
      'verify-full under another name',
      () => `${elsewhere()}?sslmode=verify-full&sslrootcert=${trusted}`,
      /for another host/,
    ],
    [
      'an authority without a file',
      () => `${postgres.url}?sslmode=verify-full&sslrootcert=${trusted}.none`,
      /no such file.*authority\.pem\.none/,
    ],
    [
      'a certificate of the client',
      () => `${postgres.urlOf(certified)}?sslmode=require&sslcert=${client.cert}&sslkey=${client.key}`,
      'opened',
    ],
    ['none where one is asked for', () => `${postgres.urlOf(certified)}?sslmode=require`, /the certificate/],
  ])('%s', async (_what, url, expected) => {
    if (typeof expected === 'string') expect(await open(url())).toBe(expected);
    else expect(await open(url())).toMatch(expected);
  });
});

function withPassword(url: string, password: string): string {
  const changed = new URL(url);
  changed.password = password;
  return changed.href;
}
