/**
 * Servers that users have, and `npm test` has not: PgBouncer of this system, and a Redis that is named by `TEST_REDIS_URL`. The
 * limiter gives its keys there names of their own. They expire, but for its clocks, which the test removes.
 */
import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { installPgbouncer } from '../../deploy/local/install.ts';
import { openPostgresCatalog } from '../../src/catalog/postgres/open-catalog.ts';
import { RedisLimiter } from '../../src/service/limits/redis-limiter.ts';
import { describeCatalog } from '../catalog/conformance.ts';
import { describeLimiter } from '../service/limits/limiter-conformance.ts';
import { startPgbouncer } from '../support/cluster/pgbouncer.ts';
import { newSharedDatabase } from '../support/cluster/servers.ts';

const redisUrl = process.env['TEST_REDIS_URL'];

describe.skipIf(redisUrl === undefined)('an outside Redis', () => {
  const opened: RedisLimiter[] = [];
  const clocks: string[] = [];
  afterAll(async () => {
    for (const limiter of opened) limiter.close();
    const one = new Redis(redisUrl!);
    const { host, port, username, password, tls } = one.options;
    const isCluster = (await one.info('cluster')).includes('cluster_enabled:1');
    const redis = isCluster
      ? new Cluster([{ host, port }], { redisOptions: { username, password, tls } })
      : one;
    await Promise.all(clocks.map((clock) => redis.del(clock)));
    for (const client of [one, redis]) client.disconnect();
  });
  describeLimiter('an outside Redis', async () => {
    const prefix = randomUUID();
    // The second name is that in a cluster.
    clocks.push(`${prefix}:clock`, `{${prefix}}:clock`);
    const options = { url: redisUrl!, nodes: () => 1, onChange: () => undefined };
    const limiter = await RedisLimiter.connect({ ...options, prefix, usesGivenTime: true });
    opened.push(limiter);
    if (limiter.isAway) throw new Error('the Redis of TEST_REDIS_URL does not answer');
    return limiter;
  });
});

const missing = await installPgbouncer();
if (missing !== undefined) console.log(`without PgBouncer: ${missing}`);

describe.skipIf(missing !== undefined)('PgBouncer', () => {
  describeCatalog('PostgreSQL behind PgBouncer in session mode', async () => {
    const pooler = await startPgbouncer(await newSharedDatabase());
    const keyPepper = randomBytes(32);
    const open = () => openPostgresCatalog({ url: pooler.url, keyPepper, actor: 'conformance' });
    let catalog = await open();
    return {
      get catalog() {
        return catalog;
      },
      async reopen() {
        await catalog.close();
        catalog = await open();
      },
      async dispose() {
        await catalog.close();
        await pooler.stop();
      },
    };
  });

  it.for<Readonly<Record<string, string>>>([{}, { max_prepared_statements: '100' }])(
    'in transaction mode ends the start, with %o',
    async (settings, { skip }) => {
      const { stdout } = await promisify(execFile)('pgbouncer', ['--version']);
      const [, minor] = /^PgBouncer 1\.(\d+)/.exec(stdout) ?? [];
      if (Object.keys(settings).length > 0 && Number(minor) < 21) skip('before PgBouncer 1.21');
      const pooler = await startPgbouncer(await newSharedDatabase(), {
        pool_mode: 'transaction',
        ...settings,
      });
      onTestFinished(() => pooler.stop());
      const start = openPostgresCatalog({ url: pooler.url, keyPepper: randomBytes(32) });
      await expect(start).rejects.toThrow('it shares sessions between clients: a pooler in transaction mode');
    },
  );
});
