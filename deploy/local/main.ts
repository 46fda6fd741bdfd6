/** `npm run cluster`: several nodes on this machine until Ctrl-C, with a first tenant. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startCluster, type LocalCluster } from './cluster.ts';

const nodes = 3;
const port = 8080;

const main = path.resolve(import.meta.dirname, '../../src/cli/main.ts');

const directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-cluster-'));
try {
  process.stdout.write('starting PostgreSQL, SeaweedFS, Redis, an encoder, three nodes and HAProxy ...\n');
  const cluster = await startCluster({ directory, nodes, balance: 'index', port });
  try {
    await describe(cluster);
    const ended = Promise.withResolvers<void>();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ended.resolve());
    await ended.promise;
  } finally {
    await cluster.stop();
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}

/** Prints where everything is, and a key of a new tenant. */
async function describe(cluster: LocalCluster): Promise<void> {
  const create = [main, 'tenant', 'create', '--name', 'default', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, create, {
    env: { ...process.env, ...cluster.environment },
  });
  const { api_key: apiKey } = JSON.parse(stdout) as { readonly api_key: string };
  process.stdout.write(`
balancer   ${cluster.url}
nodes      ${cluster.nodes.map(({ url }) => url).join(' ')}
PostgreSQL ${cluster.postgres.url}
S3         ${cluster.seaweed.environment['AWS_ENDPOINT_URL_S3']}, bucket ${cluster.seaweed.bucket}
Redis      ${cluster.redis.url}
files      ${directory}

  export MAXSIMD_URL=${cluster.url}
  export MAXSIMD_API_KEY=${apiKey}

Ctrl-C ends all of it and removes the files.
`);
}
