/**
 * Several nodes on this machine, with the servers that they share: PostgreSQL, SeaweedFS, Redis, one encoder and HAProxy. Each is
 * a child of this process and ends with it. For trying a cluster, and for the tests.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startHaproxy } from './haproxy.ts';
import { installServers } from './install.ts';
import { startPostgres, type RunningPostgres } from './postgres.ts';
import { startRedis, type RunningRedis } from './redis.ts';
import { startSeaweed, type RunningSeaweed } from './seaweedfs.ts';
import { freePort } from './free-port.ts';
import { startServer, type RunningServer } from './server-process.ts';

export interface ClusterOptions {
  /** A new directory, created if it is missing. All users must be able to read its parents. */
  readonly directory: string;
  readonly nodes: number;
  readonly balance: 'index' | 'turns';
  /** Variables of the nodes, before all others. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Port of the balancer. Absent = a free one. */
  readonly port?: number;
}

export interface LocalNode extends RunningServer {
  readonly url: string;
  readonly directory: string;
  readonly logFile: string;
  readonly metricsUrl: string;
}

export interface SharedServices {
  /** Holds their files. */
  readonly directory: string;
  readonly postgres: RunningPostgres;
  readonly redis: RunningRedis;
  readonly seaweed: RunningSeaweed;
  /** The variables that a node, or the command line, needs to use them. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

export interface LocalCluster extends SharedServices {
  /** The URL of the balancer. */
  readonly url: string;
  readonly nodes: readonly LocalNode[];
  readonly balancer: RunningServer;
}

const root = path.resolve(import.meta.dirname, '../..');

export async function startCluster(options: ClusterOptions): Promise<LocalCluster> {
  const { directory } = options;
  const programs = await installServers();
  const under = (name: string): string => path.join(directory, name);
  await using starting = new AsyncDisposableStack();
  const started = <Server extends Pick<RunningServer, 'stop'>>(server: Server): Server =>
    starting.adopt(server, (running) => running.stop());

  const shared = started(await startSharedServices(directory));
  const encoder = started(await startEncoder(under('encoder.log')));
  const environment = { ...shared.environment, MAXSIMD_ENCODERS: `127.0.0.1:${encoder.port}` };
  const nodes: LocalNode[] = [];
  for (let place = 1; place <= options.nodes; place += 1) {
    const name = `node-${place}`;
    const node = await startNode(under(name), {
      ...environment,
      // Connections show the name of their node.
      MAXSIMD_CATALOG_URL: `${shared.postgres.url}?application_name=${name}`,
      ...options.environment,
    });
    nodes.push(started(node));
  }
  const balancer = started(
    await startHaproxy({
      program: programs.haproxy,
      directory: under('haproxy'),
      port: options.port ?? (await freePort()),
      nodes: nodes.map(({ port }) => port),
      balance: options.balance,
    }),
  );
  const servers = starting.move();
  return {
    ...shared,
    url: `http://127.0.0.1:${balancer.port}`,
    nodes,
    balancer,
    environment,
    stop: () => servers.disposeAsync(),
  };
}

/** Starts the servers that nodes share, without any node. */
export async function startSharedServices(directory: string): Promise<SharedServices> {
  const programs = await installServers();
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o755);
  const under = (name: string): string => path.join(directory, name);
  await using starting = new AsyncDisposableStack();
  const started = <Server extends RunningServer>(server: Server): Server =>
    starting.adopt(server, (running) => running.stop());
  const [postgres, redis, seaweed] = await Promise.all([
    startPostgres({
      programs: programs.postgres,
      directory: under('postgres'),
      port: await freePort(),
    }).then(started),
    startRedis({ program: programs.redis, directory: under('redis'), port: await freePort() }).then(started),
    startSeaweed({ program: programs.weed, directory: under('seaweedfs'), port: await freePort() }).then(
      started,
    ),
  ]);
  const pepper = under('key-pepper');
  await writeFile(pepper, randomBytes(32), { mode: 0o600 });
  const servers = starting.move();
  return {
    directory,
    postgres,
    redis,
    seaweed,
    environment: {
      ...seaweed.environment,
      MAXSIMD_CATALOG_URL: postgres.url,
      MAXSIMD_BLOBS_URL: `s3://${seaweed.bucket}/indexes`,
      MAXSIMD_LIMITER_URL: redis.url,
      MAXSIMD_KEY_PEPPER_FILE: pepper,
    },
    stop: () => servers.disposeAsync(),
  };
}

async function startEncoder(logFile: string): Promise<RunningServer> {
  const port = await freePort();
  return startServer({
    name: 'the encoder',
    command: process.execPath,
    args: [
      path.join(root, 'src/encoder/server/main.ts'),
      `--listen=127.0.0.1:${port}`,
      '--provider=cpu',
      '--log-level=warn',
      ...['2', '1'].map((version) => `--model-dir=${path.join(root, 'models/bge-small-maxsim', version)}`),
    ],
    port,
    logFile,
  });
}

export async function startNode(
  directory: string,
  environment: Readonly<Record<string, string>>,
): Promise<LocalNode> {
  await mkdir(directory, { recursive: true });
  const [port, metricsPort] = await Promise.all([freePort(), freePort()]);
  const url = `http://127.0.0.1:${port}`;
  const logFile = path.join(directory, 'node.log');
  const server = await startServer({
    name: 'a node',
    command: process.execPath,
    args: [path.join(root, 'src/cli/main.ts'), 'serve'],
    port,
    logFile,
    environment: {
      NODE_ENV: 'production',
      MAXSIMD_DATA_DIR: path.join(directory, 'data'),
      MAXSIMD_HTTP_PORT: String(port),
      MAXSIMD_METRICS_PORT: String(metricsPort),
      ...environment,
    },
    probe: async () => {
      const answer = await fetch(`${url}/readyz`);
      if (!answer.ok) throw new Error(`not ready: ${answer.status}`);
    },
  });
  return { ...server, url, directory, logFile, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics` };
}
