/**
 * `npm run cluster`: runs several nodes on this machine until Ctrl-C, with a first tenant. The balancer listens on
 * MAXSIMD_HTTP_PORT. If that is not set, it listens on 8080, or on any free port if 8080 is in use.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startCluster, type LocalCluster } from './cluster.ts';
import { describeCluster, portOf } from './describe-cluster.ts';

const nodes = 3;

const main = path.resolve(import.meta.dirname, '../../src/cli/main.ts');

const port = await portOf(process.env['MAXSIMD_HTTP_PORT']).catch((error: Error) => {
  process.stderr.write(`maxsimd: ${error.message}\n`);
  process.exit(1);
});
// From the start on, and again and again: npm passes on a signal that the process group has got already.
const ended = Promise.withResolvers<void>();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => ended.resolve());
const directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-cluster-'));
try {
  process.stdout.write('starting PostgreSQL, SeaweedFS, Redis, an encoder, three nodes and HAProxy ...\n');
  const cluster = await startCluster({ directory, nodes, balance: 'index', port });
  try {
    process.stdout.write(describeCluster(cluster, await createTenant(cluster)));
    await ended.promise;
  } finally {
    await cluster.stop();
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}

/** Creates a tenant with the limits of the first tenant of a data directory, and returns its key. */
async function createTenant({ environment }: LocalCluster): Promise<string> {
  const room = ['--unlimited', '--requests-per-minute=1000000', '--max-concurrent-requests=64'];
  const create = [main, 'tenant', 'create', '--name=default', ...room, '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, create, {
    env: { ...process.env, ...environment },
  });
  return (JSON.parse(stdout) as { readonly api_key: string }).api_key;
}
