/**
 * `npm run bench -- hostile`: what the worst requests that tenants can send do to others. The attackers are a process of
 * their own at the lowest priority. Meanwhile three threads ask on in a row: one `/healthz`, one a search of another
 * tenant, one the same search with a body of more than 64 KiB. The report gives their waits before the attack and during
 * it, the longest delay of the api process's event loop, its peak of memory, and what the attackers were charged. Each
 * attack has a server of its own; with `--against` a second checkout is measured after this one, attack by attack.
 */
import { fork } from 'node:child_process';
import { Agent } from 'node:http';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { endWithThisProcess } from '../lib/endings.ts';
import { startServer, type ServerProcess, type TenantUsage } from '../lib/service/server-process.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { exchange } from '../lib/service/exchange.ts';
import { scrape } from '../lib/service/metrics.ts';
import { integer, names, optional } from '../lib/options.ts';
import { memoryBytes } from '../lib/service/process-counters.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { maximum, median, quantile } from '../lib/statistics.ts';
import { columns } from '../lib/table.ts';
import { packageTexts } from '../lib/texts.ts';
import type { Attack } from './attack.ts';
import type { AttackOrder, AttackOutcome } from './attacking.ts';
import { attacks } from './attacks.ts';
import type { ProbeResult, ProbeTarget } from './prober.ts';

const known = attacks.map(({ name }) => name);

const settings = {
  attacks: names(known, 'attacks to measure'),
  against: optional('checkout', 'folder of another checkout, built and installed, to compare with'),
  seconds: integer(
    0,
    'of each attack again and again, by tenants with the default limits; 0: once, without limits',
    0,
  ),
};

type Options = OptionsOf<typeof settings>;

export const hostile = benchmark({
  name: 'hostile',
  summary: 'what the worst requests of tenants do to others',
  settings,
  run,
  render,
});

interface HostileReport {
  readonly environment: Environment;
  readonly rows: readonly HostileRow[];
}

interface HostileRow {
  readonly attack: string;
  readonly what: string;
  readonly side: 'this' | 'against';
  /** How often each status was answered. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly attack_ms: number;
  readonly healthz_max_ms: number;
  /** Searches of another tenant. */
  readonly search: Waits;
  /** The same with a large body. */
  readonly large_search: Waits;
  readonly event_loop_max_ms: number;
  /** The api process, since its start. */
  readonly peak_mib: number;
  /** All attackers together, for the attack alone. */
  readonly charged: TenantUsage;
}

interface Waits {
  readonly quiet_p50_ms: number;
  readonly quiet_p99_ms: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
  /** During the attack: other answers than 200, and none. */
  readonly failed: number;
}

/** White space behind the JSON, which makes a search a large body. */
const largeBodyBytes = 100 << 10;
const neighbourDocuments = 40;
/** Before the attack. */
const quietMs = 1000;
/** Share of the seconds of an attack, so that a percentile of the quiet has as much behind it. */
const quietShare = 0.5;
/** What the command line sets holds by then. */
const limitsHoldMs = 5000;
/** What was prepared counts no more by then. */
const rateWindowMs = 61_000;
/** After the last answer, so that what is still under way is seen. */
const settleMs = 500;

async function run(options: Options): Promise<HostileReport> {
  const rows: HostileRow[] = [];
  for (const attack of attacks.filter(({ name }) => options.attacks.includes(name))) {
    for (const side of ['this', 'against'] as const) {
      if (side === 'against' && options.against === undefined) continue;
      const row = await measure(attack, side, options);
      options.onProgress(JSON.stringify(row));
      rows.push(row);
    }
  }
  return { environment: describeEnvironment(options.command, 'auto', []), rows };
}

function render({ rows }: HostileReport): string {
  const line = (cells: readonly string[]): string =>
    `${columns(cells, { first: 16, others: 16, left: 2 })}\n`;
  const header = [
    'attack',
    'side',
    'healthz max',
    'p50 quiet',
    'beside',
    'p99 quiet',
    'beside',
    'failed',
    'large p99 quiet',
    'beside',
    'failed',
    'loop max',
    'peak MiB',
    'requests',
    'tokens',
  ];
  return line(header) + rows.map((row) => line(cellsOf(row))).join('');
}

function cellsOf(row: HostileRow): readonly string[] {
  const { search, large_search: large, charged } = row;
  return [
    row.attack,
    row.side,
    row.healthz_max_ms.toFixed(0),
    search.quiet_p50_ms.toFixed(1),
    search.p50_ms.toFixed(1),
    search.quiet_p99_ms.toFixed(1),
    search.p99_ms.toFixed(1),
    String(search.failed),
    large.quiet_p99_ms.toFixed(1),
    large.p99_ms.toFixed(1),
    String(large.failed),
    row.event_loop_max_ms.toFixed(0),
    row.peak_mib.toFixed(0),
    String(charged.requests),
    String(charged.input_tokens),
  ];
}

async function measure(
  attack: Attack,
  side: 'this' | 'against',
  { against, environment, seconds }: Options,
): Promise<HostileRow> {
  const server = await startServer({
    environment,
    ...(side === 'against' && against !== undefined ? { checkout: against } : {}),
  });
  try {
    const neighbour = await withIndex(server, server.apiKey);
    const documents = packageTexts(neighbourDocuments).map((text, n) => ({ doc_id: `n${n}`, text }));
    await sent(neighbour, `/v1/indexes/${neighbour.indexId}/documents`, JSON.stringify({ documents }));
    const { tenants, order } = await prepared(server, attack, seconds);

    const quietProbes = startProbes(neighbour);
    await delay(Math.max(quietMs, seconds * 1000 * quietShare));
    const quiet = await quietProbes.stop();
    const before = usageOf(server, tenants);
    await eventLoopMaxMs(server);
    const probes = startProbes(neighbour);
    const outcome = await attackedBy({ ...order, step: 'run' });
    await delay(settleMs);
    const beside = await probes.stop();
    const after = usageOf(server, tenants);
    return {
      attack: attack.name,
      what: attack.what,
      side,
      statuses: outcome.statuses,
      attack_ms: outcome.ms,
      healthz_max_ms: maximum(beside.healthz.waitsMs),
      search: waits(quiet.search, beside.search),
      large_search: waits(quiet.largeSearch, beside.largeSearch),
      event_loop_max_ms: await eventLoopMaxMs(server),
      peak_mib: memoryBytes(server.processId ?? 0, 'VmHWM') / 2 ** 20,
      charged: {
        requests: after.requests - before.requests,
        input_tokens: after.input_tokens - before.input_tokens,
      },
    };
  } finally {
    await server.close();
  }
}

/** The attackers' tenants, with what the attack needs stored, and with the default limits if it goes on. */
async function prepared(
  server: ServerProcess,
  attack: Attack,
  seconds: number,
): Promise<{ readonly tenants: readonly string[]; readonly order: Omit<AttackOrder, 'step'> }> {
  const tenants = Array.from({ length: attack.tenants }, (_, n) => `attacker-${n}`);
  const attackers: Target[] = [];
  for (const name of tenants) attackers.push(await withIndex(server, server.createTenant(name)));
  const order = { attack: attack.name, attackers, seconds };
  if (attack.prepare !== undefined) await attackedBy({ ...order, step: 'prepare' });
  if (seconds > 0) {
    for (const name of tenants) server.setDefaultLimits(name);
    await delay(attack.prepare === undefined ? limitsHoldMs : rateWindowMs);
  }
  return { tenants, order };
}

type Target = AttackOrder['attackers'][number];

async function withIndex({ url }: ServerProcess, apiKey: string): Promise<Target> {
  const created = await sent({ url, apiKey }, '/v1/indexes', JSON.stringify({ name: 'hostile' }));
  const { id } = JSON.parse(created.text) as { readonly id: string };
  return { url, apiKey, indexId: id };
}

function sent({ url, apiKey }: Pick<Target, 'url' | 'apiKey'>, route: string, body: string) {
  return exchange({ agent: new Agent(), url: new URL(route, url), apiKey, body });
}

/** Runs a step of an attack in a process of the lowest priority. */
function attackedBy(order: AttackOrder): Promise<AttackOutcome> {
  const child = fork(path.join(import.meta.dirname, 'attacking.ts'), {
    execPath: 'nice',
    execArgv: ['-n', '19', process.execPath],
  });
  const forget = endWithThisProcess(() => child.kill('SIGKILL'));
  child.send(order);
  return new Promise<AttackOutcome>((resolve, reject) => {
    child.once('message', (outcome) => resolve(outcome as AttackOutcome));
    child.once('exit', (code) => reject(new Error(`the attack ended with ${code}`)));
  }).finally(forget);
}

function usageOf(server: ServerProcess, tenants: readonly string[]): TenantUsage {
  const total = { requests: 0, input_tokens: 0 };
  for (const name of tenants) {
    const usage = server.usageOf(name);
    total.requests += usage.requests;
    total.input_tokens += usage.input_tokens;
  }
  return total;
}

function waits(quiet: ProbeResult, beside: ProbeResult): Waits {
  return {
    quiet_p50_ms: median(quiet.waitsMs),
    quiet_p99_ms: quantile(quiet.waitsMs, 0.99),
    p50_ms: median(beside.waitsMs),
    p99_ms: quantile(beside.waitsMs, 0.99),
    max_ms: maximum(beside.waitsMs),
    failed: beside.failures,
  };
}

interface Probes<Result> {
  readonly healthz: Result;
  readonly search: Result;
  readonly largeSearch: Result;
}

function startProbes({ url, apiKey, indexId }: Target): { stop(): Promise<Probes<ProbeResult>> } {
  const question = { url, apiKey, path: `/v1/indexes/${indexId}/search` };
  const body = JSON.stringify({ query: 'how is the event loop kept free' });
  const healthz = startProbe({ url, apiKey, path: '/healthz' });
  const search = startProbe({ ...question, body });
  const largeSearch = startProbe({ ...question, body: body + ' '.repeat(largeBodyBytes) });
  return {
    stop: async () => ({
      healthz: await healthz.stop(),
      search: await search.stop(),
      largeSearch: await largeSearch.stop(),
    }),
  };
}

function startProbe(target: ProbeTarget): { stop(): Promise<ProbeResult> } {
  const worker = new Worker(path.join(import.meta.dirname, 'prober.ts'), { workerData: target });
  return {
    stop: () =>
      new Promise((resolve, reject) => {
        worker.once('message', resolve);
        worker.once('error', reject);
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
        worker.postMessage('stop');
      }),
  };
}

/** The longest delay since the last call. */
async function eventLoopMaxMs({ metricsUrl }: ServerProcess): Promise<number> {
  const metrics = await scrape(metricsUrl);
  return (metrics.get('maxsimd_nodejs_eventloop_lag_max_seconds') ?? Number.NaN) * 1000;
}
