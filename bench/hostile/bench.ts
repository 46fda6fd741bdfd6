/**
 * `npm run bench -- hostile`: what the worst requests that one tenant can send do to others. While each is answered,
 * two threads ask on in a row: one `/healthz`, one a search of another tenant. The report gives the longest wait of
 * each, the longest delay of the api process's event loop, and its memory. Each attack has a server of its own; with
 * `--against` a second checkout is measured after this one, attack by attack.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Agent } from 'node:http';
import { startServer, type ServerProcess } from '../lib/service/server-process.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { exchange } from '../lib/service/exchange.ts';
import { scrape } from '../lib/service/metrics.ts';
import { integer, names, optional } from '../lib/options.ts';
import { memoryBytes } from '../lib/service/process-counters.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { maximum, median, quantile } from '../lib/statistics.ts';
import { columns } from '../lib/table.ts';
import { packageTexts } from '../lib/texts.ts';
import { attacks, type Attack, type Attacker } from './attacks.ts';
import type { ProbeResult, ProbeTarget } from './prober.ts';

const known = attacks.map(({ name }) => name);

const settings = {
  attacks: names(known, 'attacks to measure'),
  against: optional('checkout', 'folder of another checkout, built and installed, to compare with'),
  seconds: integer(
    0,
    'of each attack again and again, by a tenant with the default limits; 0: once, without limits',
    0,
  ),
};

type Options = OptionsOf<typeof settings>;

export const hostile = benchmark({
  name: 'hostile',
  summary: 'what the worst requests of one tenant do to others',
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
  /** Searches of another tenant before the attack and during it. */
  readonly search_quiet_p99_ms: number;
  readonly search_p50_ms: number;
  readonly search_p99_ms: number;
  readonly search_max_ms: number;
  /** Searches of another tenant that failed. */
  readonly searches_failed: number;
  readonly event_loop_max_ms: number;
  readonly resident_mib: number;
}

const attackerName = 'attacker';
const neighbourDocuments = 40;
/** Before the attack, so that the probes have warmed up. */
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
    `${columns(cells, { first: 16, others: 13, left: 2 })}\n`;
  const header = [
    'attack',
    'side',
    'healthz max',
    'search p50',
    'quiet p99',
    'p99',
    'search max',
    'failed',
    'loop max',
    'MiB',
  ];
  return (
    line(header) +
    rows
      .map((row) =>
        line([
          row.attack,
          row.side,
          row.healthz_max_ms.toFixed(0),
          row.search_p50_ms.toFixed(1),
          row.search_quiet_p99_ms.toFixed(1),
          row.search_p99_ms.toFixed(1),
          row.search_max_ms.toFixed(0),
          String(row.searches_failed),
          row.event_loop_max_ms.toFixed(0),
          row.resident_mib.toFixed(0),
        ]),
      )
      .join('')
  );
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
    const attacker = await attackerOf(server, server.createTenant(attackerName));
    const neighbour = await attackerOf(server, server.apiKey);
    const documents = packageTexts(neighbourDocuments).map((text, n) => ({ doc_id: `n${n}`, text }));
    await neighbour.send(`/v1/indexes/${neighbour.indexId}/documents`, JSON.stringify({ documents }));
    await attack.prepare?.(attacker);
    if (seconds > 0) {
      server.setDefaultLimits(attackerName);
      await delay(attack.prepare === undefined ? limitsHoldMs : rateWindowMs);
    }
    const { url, apiKey } = neighbour;
    const question = {
      url,
      apiKey,
      path: `/v1/indexes/${neighbour.indexId}/search`,
      body: JSON.stringify({ query: 'how is the event loop kept free' }),
    };
    const quiet = startProbe(question);
    await delay(Math.max(quietMs, seconds * 1000 * quietShare));
    const quietSearches = await quiet.stop();
    const healthz = startProbe({ url, apiKey, path: '/healthz' });
    const search = startProbe(question);
    await delay(quietMs);
    await eventLoopMaxMs(server);
    const started = performance.now();
    const statuses: number[] = [];
    do statuses.push(...(await attack.run(attacker)));
    while (performance.now() - started < seconds * 1000);
    const attackMs = performance.now() - started;
    const residentMib = memoryBytes(server.processId ?? 0, 'VmRSS') / 2 ** 20;
    await delay(settleMs);
    const [health, searches] = [await healthz.stop(), await search.stop()];
    return {
      attack: attack.name,
      what: attack.what,
      side,
      statuses: counted(statuses),
      attack_ms: attackMs,
      healthz_max_ms: maximum(health.waitsMs),
      search_quiet_p99_ms: quantile(quietSearches.waitsMs, 0.99),
      search_p50_ms: median(searches.waitsMs),
      search_p99_ms: quantile(searches.waitsMs, 0.99),
      search_max_ms: maximum(searches.waitsMs),
      searches_failed: searches.failures,
      event_loop_max_ms: await eventLoopMaxMs(server),
      resident_mib: residentMib,
    };
  } finally {
    await server.close();
  }
}

async function attackerOf({ url }: ServerProcess, apiKey: string): Promise<Attacker> {
  const agent = new Agent({ keepAlive: true });
  const sent = (route: string, body?: string | Buffer) =>
    exchange({ agent, url: new URL(route, url), apiKey, body });
  const created = await sent('/v1/indexes', JSON.stringify({ name: 'hostile' }));
  const { id } = JSON.parse(created.text) as { readonly id: string };
  return { url, apiKey, indexId: id, send: async (route, body) => (await sent(route, body)).status };
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

function counted(statuses: readonly number[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
