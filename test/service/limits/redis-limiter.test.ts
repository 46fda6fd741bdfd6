/** The limiter that several nodes share, on a real Redis. */
import { randomUUID } from 'node:crypto';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RunningRedis } from '../../../deploy/local/redis.ts';
import { ReadinessProbe } from '../../../src/service/readiness.ts';
import { whyAway } from '../../../src/away-reasons.ts';
import type { Catalog } from '../../../src/catalog/contract.ts';
import type { EncoderPool } from '../../../src/encoder/protocol/contract.ts';
import type { Readiness } from '../../../src/service/contract.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../../src/service/limits/redis-limiter.ts';
import {
  redisCommand,
  serversMs,
  startTestRedis,
  startTestRedisCluster,
} from '../../support/cluster/servers.ts';
import { describeLimiter } from './limiter-conformance.ts';
import { startSwitchedProxy } from '../../support/network/switched-proxy.ts';
import { hangMs } from '../../support/running/eventually.ts';

let redis: RunningRedis;
const opened: RedisLimiter[] = [];
beforeAll(async () => {
  redis = await startTestRedis();
}, serversMs);
afterAll(() => redis.stop());
afterEach(() => {
  for (const limiter of opened.splice(0)) limiter.close();
});

const changes: boolean[] = [];
async function connect(options: Partial<RedisLimiterOptions> = {}): Promise<RedisLimiter> {
  const limiter = await RedisLimiter.connect({
    url: redis.url,
    nodes: () => 3,
    prefix: randomUUID(),
    onChange: (isAway) => void changes.push(isAway),
    ...options,
  });
  opened.push(limiter);
  return limiter;
}

describeLimiter('Redis', () => connect({ usesGivenTime: true }));

it('survives a clock of Redis that steps back without stopping anybody for longer', async () => {
  const limiter = await connect({ usesGivenTime: true });
  const admit = (nowMs: number) => limiter.admitRate('t', 2, nowMs);
  expect((await admit(3_600_000)).admitted).toBe(true);
  expect((await admit(0)).admitted).toBe(true);
  expect(await admit(1)).toMatchObject({ admitted: false, retryAfterSeconds: 60 });
  expect((await admit(60_000)).admitted).toBe(true);
});

/** Three nodes. */
function cluster(): Promise<readonly RedisLimiter[]> {
  const prefix = randomUUID();
  return Promise.all([1, 2, 3].map(() => connect({ prefix })));
}

/** As a process does that is stopped. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('three nodes', () => {
  it('admit a hundred requests at once up to the limit, whatever their clocks say', async () => {
    const nodes = await cluster();
    const admitted = await Promise.all(
      Array.from({ length: 100 }, (_value, place) =>
        nodes[place % 3]!.admitRate('t', 60, Date.now() + ((place % 3) - 1) * 300_000),
      ),
    );
    expect(admitted.filter((rate) => rate.admitted)).toHaveLength(60);
  });

  it('share slots', async () => {
    const [one, two, three] = await cluster();
    const permits = await Promise.all(
      Array.from({ length: 100 }, (_value, place) => [one!, two!, three!][place % 3]!.acquireSlot('t', 7)),
    );
    const taken = permits.filter((permit) => permit !== undefined);
    expect(taken).toHaveLength(7);
    taken[0]?.release();
    await expect.poll(async () => (await two!.acquireSlot('t', 7)) !== undefined).toBe(true);
    expect(await three!.acquireSlot('t', 7)).toBeUndefined();
  });

  it('keep slots for as long as they are used, and those of a node that dies no longer than its leases', async () => {
    const prefix = randomUUID();
    const [dying, using] = await Promise.all([1, 2].map(() => connect({ prefix, leaseMs: 300 })));
    await dying!.acquireSlot('t', 2);
    await using!.acquireSlot('t', 2);
    expect(await using!.acquireSlot('t', 2)).toBeUndefined();
    dying!.close();
    await expect.poll(() => using!.acquireSlot('t', 2)).toBeDefined();
    await pause(900);
    const other = await connect({ prefix });
    expect(await other.acquireSlot('t', 2)).toBeUndefined();
  });

  it('admit their shares evenly while Redis does not answer, and no more for a minute after', async () => {
    const [one, two] = await cluster();
    for (let count = 0; count < 50; count += 1) await one!.admitRate('t', 60, Date.now());
    const held = await one!.acquireSlot('t', 6);
    redis.kill('SIGSTOP');
    const began = Date.now();
    const lost = await one!.admitRate('t', 60, began);
    expect(Date.now() - began).toBeLessThan(hangMs);
    // The window of the share is full, one leaves every three seconds.
    expect(lost).toMatchObject({ admitted: false, retryAfterSeconds: 3 });
    expect((await one!.admitRate('t', 60, began + 3_001)).admitted).toBe(true);
    expect((await one!.admitRate('t', 60, began + 3_002)).admitted).toBe(false);
    expect((await two!.admitRate('t', 60, began)).admitted).toBe(false);
    // A share of two slots, one of them taken before.
    expect(await one!.acquireSlot('t', 6)).toBeDefined();
    expect(await one!.acquireSlot('t', 6)).toBeUndefined();
    held?.release();
    expect(await one!.acquireSlot('t', 6)).toBeDefined();
    expect(await one!.acquireSlot('t', 6)).toBeUndefined();
    expect([one!.isAway, two!.isAway]).toEqual([true, true]);
    redis.kill('SIGCONT');
    await expect.poll(() => [one!.isAway, two!.isAway]).toEqual([false, false]);
    // So do keys.
    const key = { keyId: 'k', perMinute: 6 };
    expect(await two!.admitRate('w', 6_000_000, Date.now() + 3_001, key)).toMatchObject({
      admitted: false,
      isOfKey: true,
    });
    // Redis holds fifty of sixty: the share decides.
    expect((await one!.admitRate('t', 60, Date.now())).admitted).toBe(false);
    expect((await two!.admitRate('u', 60, Date.now())).admitted).toBe(false);
    expect((await two!.admitRate('u', 60, Date.now() + 3_001)).admitted).toBe(true);
  });

  it('do not take a pause of their own for a loss of Redis', async () => {
    const [one] = await cluster();
    await one!.admitRate('t', 60, Date.now());
    const admission = one!.admitRate('t', 60, Date.now());
    const slot = one!.acquireSlot('t', 6);
    standStill(2_500);
    expect(await admission).toMatchObject({ admitted: true, remaining: 58 });
    expect(await slot).toBeDefined();
    expect(one!.isAway).toBe(false);
  });

  it('go on with shares when Redis is killed, and with Redis when it is back', async () => {
    const [one] = await cluster();
    changes.length = 0;
    redis.kill('SIGKILL');
    await expect.poll(() => one!.isAway).toBe(true);
    const limits = await Promise.all(
      [0, 1, 2, 3].map(async (limit) => {
        const now = Date.now();
        const first = await one!.admitRate(`limit ${limit}`, limit, now);
        const later = await one!.admitRate(`limit ${limit}`, limit, now + 60_001);
        return [first.admitted, later.admitted];
      }),
    );
    // At least one a minute, where there is any; none at once.
    expect(limits).toEqual([
      [false, false],
      [false, true],
      [false, true],
      [false, true],
    ]);
    await pause(50);
    await redis.stop();
    await redis.start();
    await expect.poll(() => one!.isAway).toBe(false);
    expect(changes.includes(true) && changes.at(-1) === false).toBe(true);
    expect((await one!.admitRate('new', 60, Date.now())).admitted).toBe(false);
    expect((await one!.admitRate('new', 60, Date.now() + 3_001)).admitted).toBe(true);
  });

  it('follow the number of nodes with their shares, without a burst and without a pause', async () => {
    let nodes = 3;
    const one = await connect({ nodes: () => nodes });
    redis.kill('SIGSTOP');
    let now = Date.now();
    const admit = async (): Promise<boolean> => (await one.admitRate('t', 6_000, now)).admitted;
    await admit();
    for (const count of [4, 2, 3]) {
      nodes = count;
      expect(await admit()).toBe(false);
      expect(await admit()).toBe(false);
      now += 60_000 / (6_000 / count) + 1;
      expect(await admit()).toBe(true);
      expect(await admit()).toBe(false);
    }
    redis.kill('SIGCONT');
    await expect.poll(() => one.isAway).toBe(false);
  });

  it('give nobody a burst by a Redis that began anew while nobody asked', async () => {
    const [one] = await cluster();
    for (let count = 0; count < 60; count += 1) await one!.admitRate('t', 60, Date.now());
    await restart([one!]);
    expect((await one!.admitRate('t', 60, Date.now())).admitted).toBe(false);
  });

  it('hold on to their slots when Redis has forgotten them', async () => {
    const [one, two] = await cluster();
    for (let count = 0; count < 7; count += 1) expect(await one!.acquireSlot('t', 7)).toBeDefined();
    await restart([one!, two!]);
    expect(await two!.acquireSlot('t', 7)).toBeUndefined();
  });

  it('count the slots that they gave while Redis was away, once it is back', async () => {
    const prefix = randomUUID();
    const nodes = await Promise.all([1, 2, 3].map(() => connect({ prefix })));
    redis.kill('SIGSTOP');
    const permits = [];
    for (const node of nodes) {
      for (let count = 0; count < 3; count += 1) permits.push(await node.acquireSlot('t', 6));
    }
    const taken = permits.filter((permit) => permit !== undefined);
    expect(taken).toHaveLength(6);
    redis.kill('SIGCONT');
    await expect.poll(() => nodes.some(({ isAway }) => isAway)).toBe(false);
    const newcomer = await connect({ prefix });
    expect(await newcomer.acquireSlot('t', 6)).toBeUndefined();
    taken[0]?.release();
    await expect.poll(async () => (await newcomer.acquireSlot('t', 6)) !== undefined).toBe(true);
    expect(await newcomer.acquireSlot('t', 6)).toBeUndefined();
  });
});

it('has the names of earlier versions in a single Redis, so that nodes of both count together', async () => {
  const prefix = randomUUID();
  const limiter = await connect({ prefix });
  await limiter.admitRate('t', 60, Date.now(), { keyId: 'k', perMinute: 60 });
  await limiter.acquireSlot('t', 1);
  const names = await redisCommand(redis, '--scan', '--pattern', `${prefix}*`);
  expect(names.trim().split('\n').toSorted()).toEqual(
    ['clock', 'rate:key:k', 'rate:probe', 'rate:t', 'slots:t'].map((name) => `${prefix}:${name}`),
  );
});

function readinessOf(limiter: RedisLimiter): Promise<Readiness> {
  const probe = new ReadinessProbe({
    catalog: { ping: () => Promise.resolve() } as Catalog,
    encoders: { ready: () => true } as EncoderPool,
    store: { freeBytes: () => Promise.resolve(2 ** 40) },
    limiter,
    draining: () => false,
    nowMs: () => performance.now(),
  });
  return probe.readiness();
}

/** The rights that the guide names. In a cluster a user needs more. */
const commandsOfUser =
  '+hello +evalsha +eval +time +hmget +hset +zremrangebyscore +zcard +zrange +zadd +pexpire +zrem'.split(' ');

/** Makes a user that may do this alone on these servers, and returns the URL for it on the first. */
async function newUser(
  servers: readonly [RunningRedis, ...RunningRedis[]],
  rights: readonly string[],
): Promise<string> {
  const [name, password] = [randomUUID(), randomUUID()];
  for (const server of servers) {
    await redisCommand(server, 'ACL', 'SETUSER', name, 'on', `>${password}`, '-@all', ...rights);
  }
  return Object.assign(new URL(servers[0].url), { username: name, password }).href;
}

describe('a user with few rights', () => {
  const keys = '~maxsimd:*';
  const prefix = 'maxsimd';

  it('is enough, and the driver prints nothing', async () => {
    const printed = vi.spyOn(console, 'warn');
    onTestFinished(() => printed.mockRestore());
    const limiter = await connect({ url: await newUser([redis], [keys, ...commandsOfUser]), prefix });
    await limiter.admitRate('t', 1, Date.now(), { keyId: 'k', perMinute: 1 });
    expect(await limiter.admitRate('t', 1, Date.now())).toMatchObject({ admitted: false });
    (await limiter.acquireSlot('t', 1))!.release();
    await limiter.ping();
    expect(limiter.isAway).toBe(false);
    expect(printed).not.toHaveBeenCalled();
  });

  // Redis asks nobody for the right to HELLO.
  it.each(commandsOfUser.slice(1))('ends the start where it lacks %s', async (command) => {
    const rights = [keys, ...commandsOfUser.filter((other) => other !== command)];
    const start = connect({ url: await newUser([redis], rights), prefix });
    await expect(start).rejects.toThrow('it denies this program a permission that it needs');
  });

  it('counts in the database that the URL names, or not at all', async () => {
    const few = await newUser([redis], [keys, ...commandsOfUser]);
    const denied = connect({ url: new URL('/3', few).href, prefix });
    await expect(denied).rejects.toThrow('it denies this program a permission that it needs');
    const enough = await newUser([redis], ['~*', ...commandsOfUser, '+select']);
    await expect(connect({ url: new URL('/99', enough).href })).rejects.toThrow('it has no such database');
    const own = randomUUID();
    await connect({ url: new URL('/3', enough).href, prefix: own });
    const found = await redisCommand(redis, '-n', '3', '--scan', '--pattern', `${own}*`);
    expect(found).toContain(`${own}:rate:probe`);
  });
});

describe('a Redis that answers and cannot be used', () => {
  const starts: readonly [string, readonly string[], readonly string[], RegExp][] = [
    [
      'is a replica',
      ['REPLICAOF', '127.0.0.1', '9'],
      ['REPLICAOF', 'NO', 'ONE'],
      /it is read-only: a replica/,
    ],
    [
      'is full',
      ['CONFIG', 'SET', 'maxmemory', '1'],
      ['CONFIG', 'SET', 'maxmemory', '0'],
      /it takes no more writes/,
    ],
  ];
  it.each(starts)('ends the start where it %s', async (_what, change, undo, reason) => {
    await redisCommand(redis, ...change);
    onTestFinished(() => void redisCommand(redis, ...undo));
    await expect(connect()).rejects.toThrow(reason);
    await redisCommand(redis, ...undo);
    expect((await connect()).isAway).toBe(false);
  });

  it('is full for a moment, which the start waits for', async () => {
    const asked = Promise.withResolvers<boolean>();
    await redisCommand(redis, 'CONFIG', 'SET', 'maxmemory', '1');
    onTestFinished(() => void redisCommand(redis, 'CONFIG', 'SET', 'maxmemory', '0'));
    const start = connect({ onCall: ({ failed }) => asked.resolve(failed) });
    expect(await asked.promise).toBe(true);
    await redisCommand(redis, 'CONFIG', 'SET', 'maxmemory', '0');
    expect((await start).isAway).toBe(false);
  });

  it('is in protected mode, which ends the start, and the driver prints nothing', async () => {
    const printed = vi.spyOn(console, 'warn');
    const server = createServer((client) => {
      client.on('error', () => undefined);
      client.end('-DENIED Redis is running in protected mode because no password is set\r\n');
    });
    await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
    onTestFinished(() => {
      printed.mockRestore();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    await expect(connect({ url: `redis://127.0.0.1:${port}` })).rejects.toThrow('it is in protected mode');
    expect(printed).not.toHaveBeenCalled();
  });

  it('is left when the address leads to another, as after a failover', async () => {
    const other = await startTestRedis(() => ({ requirepass: new URL(redis.url).password }));
    const proxy = await startSwitchedProxy(portOf(redis));
    onTestFinished(async () => {
      proxy.close();
      await redisCommand(redis, 'REPLICAOF', 'NO', 'ONE');
      await other.stop();
    });
    const limiter = await connect({ url: withPort(redis.url, proxy.port) });
    proxy.leadTo(portOf(other));
    await redisCommand(redis, 'REPLICAOF', '127.0.0.1', String(portOf(other)));
    await limiter.ping();
    expect(limiter.isAway).toBe(true);
    await expect.poll(() => limiter.isAway).toBe(false);
  });

  it('is loading its data, which the start does not wait for', async () => {
    const slow = await startTestRedis(() => ({
      'key-load-delay': '2000',
      'loading-process-events-interval-bytes': '1024',
    }));
    onTestFinished(() => slow.stop('SIGKILL'));
    const fill = `for i = 1, 30000 do redis.call('SET', 'key ' .. i, string.rep('x', 100)) end`;
    await redisCommand(slow, 'EVAL', fill, '0');
    await redisCommand(slow, 'SAVE');
    await slow.stop('SIGKILL');
    await slow.start();
    const reported: (string | undefined)[] = [];
    const onChange: RedisLimiterOptions['onChange'] = (_isAway, cause) => void reported.push(whyAway(cause));
    const limiter = await connect({ url: slow.url, onChange });
    expect(limiter.isAway).toBe(true);
    await redisCommand(slow, 'CONFIG', 'SET', 'key-load-delay', '0');
    await expect.poll(() => limiter.isAway).toBe(false);
    expect(reported).toEqual(['is loading its data', undefined]);
  });

  it('is away with the reason, stays away, and comes back by itself', async () => {
    const reported: (string | undefined)[] = [];
    const limiter = await connect({ onChange: (_isAway, cause) => void reported.push(whyAway(cause)) });
    await redisCommand(redis, 'CONFIG', 'SET', 'maxmemory', '1');
    // As /readyz asks, without any request.
    const { checks } = await readinessOf(limiter);
    expect(checks.limiter).toMatch(/^degraded: /);
    // Asked again meanwhile.
    await pause(2_500);
    expect(limiter.isAway).toBe(true);
    await redisCommand(redis, 'CONFIG', 'SET', 'maxmemory', '0');
    await expect.poll(() => limiter.isAway).toBe(false);
    expect(reported).toEqual([undefined, expect.stringContaining('full'), undefined]);
  });
});

function portOf({ url }: RunningRedis): number {
  return Number(new URL(url).port);
}

function withPort(url: string, port: number): string {
  return Object.assign(new URL(url), { port: String(port) }).href;
}

it('sends all commands of a ping before the first answer, so that a slow Redis takes the time of one', async () => {
  const proxy = await startSwitchedProxy(portOf(redis));
  onTestFinished(() => proxy.close());
  const limiter = await connect({ url: withPort(redis.url, proxy.port) });
  proxy.holdUntil('zrem');
  await limiter.ping();
  expect(limiter.isAway).toBe(false);
});

describe('a cluster of three Redis', () => {
  let members: readonly RunningRedis[];
  beforeAll(async () => {
    members = await startTestRedisCluster();
  }, serversMs);
  afterAll(() => Promise.all(members.map((member) => member.stop())));

  it('counts for all nodes together, whichever member each of them names', async () => {
    const prefix = randomUUID();
    const nodes = await Promise.all(members.map(({ url }) => connect({ url, prefix })));
    expect(nodes.map(({ isAway }) => isAway)).toEqual([false, false, false]);
    // A new tenant has all of its limit at once.
    const rates = await Promise.all(
      Array.from({ length: 100 }, (_value, place) => nodes[place % 3]!.admitRate('t', 60, Date.now())),
    );
    expect(rates.filter(({ admitted }) => admitted)).toHaveLength(60);
    const key = { keyId: 'k', perMinute: 1 };
    expect(await nodes[0]!.admitRate('u', 60, Date.now(), key)).toMatchObject({ admitted: true });
    expect(await nodes[1]!.admitRate('u', 60, Date.now(), key)).toMatchObject({
      admitted: false,
      isOfKey: true,
    });
    const slot = await nodes[1]!.acquireSlot('t', 1);
    expect(slot).toBeDefined();
    expect(await nodes[2]!.acquireSlot('t', 1)).toBeUndefined();
    slot?.release();
    await expect.poll(async () => (await nodes[2]!.acquireSlot('t', 1)) !== undefined).toBe(true);
    await Promise.all(nodes.map((node) => node.ping()));
    expect(nodes.map(({ isAway }) => isAway)).toEqual([false, false, false]);
  });

  it('takes a user with few rights', async () => {
    // The limiter does not know yet that it is a cluster when it asks for the first time.
    const rights = ['~maxsimd:*', '~{maxsimd}:*', ...commandsOfUser, '+cluster|slots'];
    const [first, ...others] = members;
    const url = await newUser([first!, ...others], rights);
    const limiter = await connect({ url, prefix: 'maxsimd' });
    expect(limiter.isAway).toBe(false);
    expect(await limiter.admitRate('few', 60, Date.now())).toMatchObject({ admitted: true, remaining: 59 });
  });

  it('is away while no member has the keys, with the reason, and back when one has', async () => {
    const reported: (string | undefined)[] = [];
    const limiters = await Promise.all(
      members.map(({ url }) =>
        connect({ url, onChange: (_isAway, cause) => void reported.push(whyAway(cause)) }),
      ),
    );
    const [first] = members;
    await first!.stop('SIGKILL');
    const areAway = async (): Promise<readonly boolean[]> => {
      await Promise.all(limiters.map((limiter) => limiter.ping()));
      return limiters.map(({ isAway }) => isAway);
    };
    // A cluster serves no key when it lacks some.
    await expect.poll(areAway).toEqual([true, true, true]);
    await first!.start();
    await expect.poll(areAway).toEqual([false, false, false]);
    expect(new Set(reported)).toContain('is a cluster in which no node serves the keys');
  });
});

/** Redis begins anew with nothing, and the nodes have found it again. */
async function restart(nodes: readonly RedisLimiter[]): Promise<void> {
  await redis.stop('SIGKILL');
  await expect.poll(() => nodes.every(({ isAway }) => isAway)).toBe(true);
  await redis.start();
  await expect.poll(() => nodes.some(({ isAway }) => isAway)).toBe(false);
}
