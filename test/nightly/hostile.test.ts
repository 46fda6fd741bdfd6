/**
 * The worst requests that tenants can send, and what others notice of them (docs/reliability.md, "Dear requests"). The
 * attackers are a process of their own at the lowest priority. Meanwhile three threads ask without a pause: one for `/healthz`,
 * one a search of another tenant, and one the same search with a body of more than 64 KiB. Each attack has a server of its own.
 */
import { fork } from 'node:child_process';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { memoryBytes } from '../../bench/lib/service/process-counters.ts';
import { maximum, median, quantile } from '../../bench/lib/statistics.ts';
import { markdownTable } from '../../bench/lib/table.ts';
import { packageTexts } from '../../bench/lib/texts.ts';
import { rounds } from '../rounds.ts';
import { createTenant, operate, runJson } from '../support/commands/command-line.ts';
import type { TestTenant } from '../support/commands/operators.ts';
import { readMetric, startServer, type ServerProcess } from '../support/running/server.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import type { AttackOrder, AttackOutcome } from './hostile/attack-process.ts';
import { repeatedAttacks, singleAttacks, type Attack } from './hostile/attacks.ts';
import type { ProbeResult, ProbeTarget } from './hostile/prober.ts';

/** The budget is 50 ms; twice that leaves room for a machine of half the speed. */
const holdMsMax = rounds({ short: 2000, nightly: 100 });
/** The p99 of the other tenant's searches beside an attack, by its quiet p99. */
const timesMax = 4;
/** A percentile may be off by so much on a machine that does other things too. */
const noiseMs = rounds({ short: 2000, nightly: 5 });
const memoryMibMax = 1.5 * 1024;

const attackSeconds = rounds({ short: 3, nightly: 60 });
/** The default limits hold by then, and no request of the preparation counts against them. */
const limitsHoldMs = rounds({ short: 5000, nightly: 61_000 });
/** After the last answer, so that work which is still under way is seen. */
const settleMs = 500;
/** White space behind the JSON makes a search a large body. */
const largeBodyBytes = 100 << 10;
const defaultLimits = '--requests-per-minute=60 --max-concurrent-requests=2 --input-tokens=50000000';

const header = ['attack', 'loop ms', '/healthz ms', 'p50 quiet', 'beside', 'p99 quiet', 'beside', 'failed'];
const table: string[][] = [];
afterAll(() =>
  console.log(markdownTable([...header, 'MiB', 'requests', 'tokens', 'statuses'], table).join('\n')),
);

describe('an attack that is sent once', { timeout: 1_800_000 }, () => {
  it.each(singleAttacks)('$name holds no event loop, and fails no search of others', async (attack) => {
    const { loopMs, failures } = await measure(attack, 0);
    expect(failures).toBe(0);
    expect(loopMs).toBeLessThan(holdMsMax);
  });
});

describe('tenants with the default limits that go on attacking', { timeout: 1_800_000 }, () => {
  it.each(repeatedAttacks)('leave others their share: $name', async (attack) => {
    const { quietP99Ms, p99Ms, failures, peakMib } = await measure(attack, attackSeconds);
    expect(failures).toBe(0);
    expect(p99Ms).toBeLessThan(timesMax * quietP99Ms + noiseMs);
    expect(peakMib).toBeLessThan(memoryMibMax);
  });
});

/** Attacks once (0 s), or again and again for some seconds with the default limits. */
async function measure(attack: Attack, seconds: number) {
  const server = await startServer({ metrics: true });
  try {
    const tenant = await createTenant(server);
    const neighbour = await targetOf(tenant);
    const documents = packageTexts(40).map((text, n) => ({ doc_id: `n${n}`, text }));
    await put(tenant.client, neighbour.indexId, documents);
    const tenants: TestTenant[] = [];
    while (tenants.length < (attack.tenants ?? 1)) tenants.push(await createTenant(server));
    const order = { attack: attack.name, attackers: await Promise.all(tenants.map(targetOf)), seconds };
    if (attack.prepare !== undefined) await attackedBy({ ...order, step: 'prepare' });
    if (seconds > 0) {
      for (const { id } of tenants)
        await operate(server, 'tenant', 'limits', id, ...defaultLimits.split(' '));
      await pause(limitsHoldMs);
    }
    const quietProbes = startProbes(neighbour);
    await pause(Math.max(1, seconds / 2) * 1000);
    const quiet = await quietProbes();
    const before = await usageOf(server, tenants);
    // Reading the metric begins its next interval.
    await loopMsOf(server);
    const probes = startProbes(neighbour);
    const statuses = await attackedBy({ ...order, step: 'run' });
    await pause(settleMs);
    const beside = await probes();
    const loopMs = await loopMsOf(server);
    const after = await usageOf(server, tenants);
    const p99Ms = quantile(beside.search.waitsMs, 0.99);
    const quietP99Ms = quantile(quiet.search.waitsMs, 0.99);
    const peakMib = memoryBytes(server.pid, 'VmHWM') / 2 ** 20;
    const failures = beside.search.failures + beside.largeSearch.failures;
    table.push([
      attack.name,
      ...[loopMs, maximum(beside.healthz.waitsMs)].map((ms) => ms.toFixed(0)),
      ...[median(quiet.search.waitsMs), median(beside.search.waitsMs), quietP99Ms, p99Ms].map((ms) =>
        ms.toFixed(1),
      ),
      ...[failures, Math.round(peakMib), after.requests - before.requests, after.tokens - before.tokens].map(
        String,
      ),
      JSON.stringify(statuses),
    ]);
    // An attack on a route or an index that does not exist is none.
    expect(statuses).not.toHaveProperty('404');
    return { loopMs, quietP99Ms, p99Ms, failures, peakMib };
  } finally {
    await server.stop();
    await server.scratch.remove();
  }
}

async function targetOf({ client, key }: TestTenant): Promise<AttackOrder['attackers'][number]> {
  const { id } = await makeIndex(client);
  return { url: client.url, apiKey: key, indexId: id };
}

/** Runs a step of an attack in a process of the lowest priority. */
async function attackedBy(order: AttackOrder): Promise<AttackOutcome> {
  const child = fork(path.join(import.meta.dirname, 'hostile/attack-process.ts'), {
    execPath: 'nice',
    execArgv: ['-n', '19', process.execPath],
  });
  try {
    child.send(order);
    return await new Promise<AttackOutcome>((resolve, reject) => {
      child.once('message', (outcome) => resolve(outcome as AttackOutcome));
      child.once('exit', (code) => reject(new Error(`the attack ended with ${code}`)));
    });
  } finally {
    child.kill('SIGKILL');
  }
}

const usageReport = z.object({
  data: z.array(z.object({ requests: z.number(), input_tokens: z.coerce.number() })),
});

/** The usage of all attackers together. */
async function usageOf(server: ServerProcess, tenants: readonly TestTenant[]) {
  const total = { requests: 0, tokens: 0 };
  for (const { id } of tenants) {
    const { data } = await runJson(server.scratch.data, ['tenant', 'usage', id], usageReport);
    for (const day of data) {
      total.requests += day.requests;
      total.tokens += day.input_tokens;
    }
  }
  return total;
}

/** The longest turn of the event loop since the last call. */
async function loopMsOf(server: ServerProcess): Promise<number> {
  return 1000 * (await readMetric(server, 'maxsimd_nodejs_eventloop_lag_max_seconds'));
}

/** The function that it returns stops the probes. */
function startProbes({ url, apiKey, indexId }: AttackOrder['attackers'][number]) {
  const body = JSON.stringify({ query: 'how is the event loop kept free' });
  const search = { url: `${url}/v1/indexes/${indexId}/search`, apiKey, body };
  const stops = {
    healthz: startProbe({ url: `${url}/healthz`, apiKey }),
    search: startProbe(search),
    largeSearch: startProbe({ ...search, body: body + ' '.repeat(largeBodyBytes) }),
  };
  return async () => ({
    healthz: await stops.healthz(),
    search: await stops.search(),
    largeSearch: await stops.largeSearch(),
  });
}

function startProbe(target: ProbeTarget): () => Promise<ProbeResult> {
  const worker = new Worker(path.join(import.meta.dirname, 'hostile/prober.ts'), { workerData: target });
  return () =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage('stop');
    });
}
