/** The servers that nodes share. A server that is started here belongs to one test file, which may stop it. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { inject } from 'vitest';
import { installServers } from '../../../deploy/local/install.ts';
import { startPostgres, type PostgresOptions, type RunningPostgres } from '../../../deploy/local/postgres.ts';
import { startRedis, type RunningRedis } from '../../../deploy/local/redis.ts';
import { startSeaweed, type RunningSeaweed, type SeaweedOptions } from '../../../deploy/local/seaweedfs.ts';
import { freePort } from '../../../deploy/local/free-port.ts';
import { eventually } from '../running/eventually.ts';
import { sharedService, type SharedServices } from '../shared-services.ts';
import { newDirectory } from '../machine/temporary-directory.ts';

/** The most time for installing and starting the servers. */
export const serversMs = 300_000;

export async function startTestPostgres(settings?: PostgresOptions['settings']): Promise<RunningPostgres> {
  const { postgres: programs } = await installServers();
  const directory = await newDirectory();
  // The server runs as another user, which must be able to enter the directory.
  await chmod(directory, 0o755);
  return startPostgres({
    programs,
    directory: `${directory}/postgres`,
    port: await freePort(),
    ...(settings === undefined ? {} : { settings }),
  });
}

/** The URL of a new, empty database. */
export async function newDatabase(server: SharedServices['postgres']): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const client = new Client({ connectionString: server.url });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  return Object.assign(new URL(server.url), { pathname: name }).href;
}

/** The URL of a new, empty database on the PostgreSQL that many test files share. */
export async function newSharedDatabase(): Promise<string> {
  return newDatabase(await sharedService(inject('sharedServicesUrl'), 'postgres'));
}

/** Runs a statement, for changes that no catalog offers, such as older rows. Returns the rows. */
export async function queryDatabase(
  url: string,
  text: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Runs a statement that locks rows, and keeps them locked until `release`. */
export async function lockRows(url: string, text: string): Promise<{ release(): Promise<void> }> {
  const client = new Client({ connectionString: url });
  // If a test fails, the rows are still locked when the server ends, and the connection breaks.
  client.on('error', () => undefined);
  await client.connect();
  await client.query('BEGIN');
  await client.query(text);
  return { release: () => client.end() };
}

export async function startTestSeaweed(options?: Pick<SeaweedOptions, 'tls'>): Promise<RunningSeaweed> {
  const { weed: program } = await installServers();
  return startSeaweed({ program, directory: await newDirectory(), port: await freePort(), ...options });
}

/** `settings` is called with the port of the server. */
export async function startTestRedis(
  settings: (port: number) => Readonly<Record<string, string>> = () => ({}),
): Promise<RunningRedis> {
  const { redis: program } = await installServers();
  const port = await freePort();
  return startRedis({ program, directory: await newDirectory(), port, settings: settings(port) });
}

export async function redisCommand({ url }: RunningRedis, ...words: readonly string[]): Promise<string> {
  const { port, password } = new URL(url);
  const env = { ...process.env, REDISCLI_AUTH: password };
  return (await promisify(execFile)('redis-cli', ['-e', '-p', port, ...words], { env })).stdout;
}

/** A Redis Cluster of three members, each with a third of the hash slots. There are no replicas. */
export async function startTestRedisCluster(): Promise<readonly RunningRedis[]> {
  const { redis: program } = await installServers();
  const password = randomUUID();
  const nodes = await Promise.all(
    [1, 2, 3].map(async () => {
      const [port, busPort] = [await freePort(), await freePort()];
      const settings = {
        'cluster-enabled': 'yes',
        'cluster-port': String(busPort),
        'cluster-node-timeout': '2000',
      };
      const node = await startRedis({ program, directory: await newDirectory(), port, password, settings });
      return { node, address: `127.0.0.1:${port}@${busPort}` };
    }),
  );
  const addresses = nodes.map(({ address }) => address);
  await promisify(execFile)('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'], {
    env: { ...process.env, REDISCLI_AUTH: password },
  });
  // The members learn of each other by themselves.
  for (const { node } of nodes)
    await eventually(
      async () => /cluster_state:ok/.exec(await redisCommand(node, 'CLUSTER', 'INFO')) ?? undefined,
    );
  return nodes.map(({ node }) => node);
}
