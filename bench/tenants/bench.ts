/**
 * `npm run bench -- tenants`: the requests of one tenant (victims) beside the dearest legal requests of another one (attacks).
 * Quiet and attacked rounds take turns, so that other work on the machine disturbs both. The attacker keeps the default limits:
 * two requests at a time, and 60 a minute over quiet and attacked rounds together. Its thread has the lowest priority, because
 * otherwise it runs on another machine. The victim sends one request after another.
 *
 * The percentiles of a round are those of its requests. The report has their medians over the rounds, and the least ratio of an
 * attacked round to the quiet one before it: other work on the machine makes ratios larger or smaller, and an attack that the
 * service does not bound is in every round.
 */
import { once } from 'node:events';
import { setTimeout as elapse } from 'node:timers/promises';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { defaultLimits } from '../../src/catalog/default-limits.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { flag, integer, names } from '../lib/options.ts';
import { startServer, type NewTenant, type ServerProcess } from '../lib/service/server-process.ts';
import { call } from '../lib/service/target.ts';
import { median, minimum, pairedRatios, percentiles } from '../lib/statistics.ts';
import { markdownTable } from '../lib/table.ts';
import type { Asked, AskerOrder } from './asker.ts';
import { attacks, victims, type Scale, type Shape } from './shapes.ts';
import { StageLog, type StageTimes } from './stage-log.ts';

const nameOf = ({ name }: Shape): string => name;

const settings = {
  attacks: names(attacks.map(nameOf), 'attacks'),
  victims: names(victims.map(nameOf), 'victims'),
  rounds: integer(3, 'quiet and attacked rounds of a cell'),
  seconds: integer(5, 'seconds of a round'),
  wideDocuments: integer(10_000, 'documents with 16 KiB of metadata that attacks ask'),
  uploadTexts: integer(50, 'texts of 2.5 KB in an upload'),
  windowTokens: integer(510, 'tokens of the longest window of the model'),
  exactDocuments: integer(400, 'documents that an exact search scores'),
  smallIndexes: integer(262, 'indexes of one document'),
  threads: integer(1, 'threads of the API'),
  stages: flag("print where the time of the victim's requests goes"),
};

type Options = OptionsOf<typeof settings>;

export const tenants = benchmark({
  name: 'tenants',
  summary: 'requests of one tenant beside the dearest requests of another one',
  settings,
  run,
  render,
});

type Percentiles = Readonly<Record<'p50' | 'p99', number>>;

/** Milliseconds. */
interface Cell {
  readonly attack: string;
  readonly victim: string;
  readonly quiet: Percentiles;
  readonly attacked: Percentiles;
  /** Those of the calmest round. */
  readonly ratios: Percentiles;
  readonly samples: number;
  /** Requests of the victim without a good answer. */
  readonly failed: number;
  readonly attack_statuses: Readonly<Record<string, number>>;
  readonly stages?: { readonly quiet: StageTimes; readonly attacked: StageTimes };
}

interface TenantsReport {
  readonly environment: Environment;
  readonly settings: Scale & { readonly seconds: number; readonly rounds: number; readonly threads: number };
  readonly cells: readonly Cell[];
}

/** The priority of the thread that attacks: the lowest. */
const niceness = 19;
/** After the last answer of the attack, so that work in the background ends before the next quiet round. */
const settleMs = 300;
/** Before the first round of a cell. */
const warmUpMs = 1500;
const victimPauseMs = 5;
const documentsPerUpsert = 50;

async function run(options: Options): Promise<TenantsReport> {
  const log = new StageLog();
  const server = await startServer({
    environment: { ...options.environment, MAXSIMD_API_THREADS: String(options.threads) },
    ...(options.stages ? { onLogLine: (line) => log.add(line) } : {}),
  });
  try {
    const victimTenant = server.newTenant('victim');
    const cells: Cell[] = [];
    const stored = new Stored(server, options);
    for (const attack of attacks.filter(({ name }) => options.attacks.includes(name))) {
      options.onProgress(`storing for ${attack.name}`);
      const attacker = await stored.askerOf(attack, server, {
        lanes: defaultLimits.maxConcurrentRequests,
        intervalMs: attackIntervalMs,
        pauseMs: 0,
        niceness,
      });
      for (const victim of victims.filter(({ name }) => options.victims.includes(name))) {
        const asker = await stored.askerOf(victim, victimTenant, {
          lanes: 1,
          intervalMs: 0,
          pauseMs: victimPauseMs,
          niceness: 0,
        });
        log.watch(victimTenant.tenantId);
        const cell = await measure(options, { attack, attacker, victim, asker, log });
        cells.push(cell);
        options.onProgress(lineOf(cell).join('  '));
        asker.close();
      }
      attacker.close();
    }
    return {
      environment: describeEnvironment(options.command, 'auto', []),
      settings: {
        ...scaleOf(options),
        seconds: options.seconds,
        rounds: options.rounds,
        threads: options.threads,
      },
      cells,
    };
  } finally {
    await server.close();
  }
}

/** Half of the time is quiet, so the requests of a minute go into half a minute. */
const attackIntervalMs = (60_000 / defaultLimits.requestsPerMinute / 2) * defaultLimits.maxConcurrentRequests;

interface Sides {
  readonly attack: Shape;
  readonly attacker: Asker;
  readonly victim: Shape;
  readonly asker: Asker;
  readonly log: StageLog;
}

async function measure(
  { rounds, seconds, stages }: Options,
  { attack, attacker, victim, asker, log }: Sides,
): Promise<Cell> {
  const quiet: Asked[] = [];
  const attacked: Asked[] = [];
  const statuses: Record<string, number> = {};
  await asked(asker, warmUpMs);
  const stageTimes = { quiet: log.empty(), attacked: log.empty() };
  for (let round = 0; round < rounds; round++) {
    log.into(stageTimes.quiet);
    quiet.push(await asked(asker, seconds * 1000));
    log.into(stageTimes.attacked);
    attacker.begin();
    asker.begin();
    await elapse(seconds * 1000);
    for (const [status, count] of Object.entries((await attacker.end()).statuses))
      statuses[status] = (statuses[status] ?? 0) + count;
    attacked.push(await asker.end());
    log.into(undefined);
    await elapse(settleMs);
  }
  const [before, beside] = [quiet, attacked].map((all) =>
    all.map(({ waitsMs }) => percentiles(waitsMs, 50, 99)),
  );
  const of = (each: readonly Percentiles[], name: keyof Percentiles) => each.map((one) => one[name]);
  const both = (one: (name: keyof Percentiles) => number): Percentiles => ({
    p50: one('p50'),
    p99: one('p99'),
  });
  return {
    attack: attack.name,
    victim: victim.name,
    quiet: both((name) => median(of(before!, name))),
    attacked: both((name) => median(of(beside!, name))),
    ratios: both((name) => minimum(pairedRatios(of(beside!, name), of(before!, name)))),
    samples: attacked.reduce((sum, { waitsMs }) => sum + waitsMs.length, 0),
    failed: [...quiet, ...attacked].reduce((sum, each) => sum + failuresOf(each), 0),
    attack_statuses: statuses,
    ...(stages
      ? { stages: { quiet: log.medians(stageTimes.quiet), attacked: log.medians(stageTimes.attacked) } }
      : {}),
  };
}

async function asked(asker: Asker, ms: number): Promise<Asked> {
  asker.begin();
  await elapse(ms);
  return asker.end();
}

function failuresOf({ statuses }: Asked): number {
  return Object.entries(statuses).reduce((sum, [status, count]) => sum + (status === '200' ? 0 : count), 0);
}

interface Asker {
  begin(): void;
  /** Resolves when every request is answered. */
  end(): Promise<Asked>;
  close(): void;
}

function startAsker(order: AskerOrder): Asker {
  const worker = new Worker(path.join(import.meta.dirname, 'asker.ts'), { workerData: order });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  const post = (message: 'begin' | 'end' | 'close'): void => worker.postMessage(message);
  return {
    begin: () => post('begin'),
    end: async () => {
      const answer = once(worker, 'message');
      post('end');
      const [found] = (await answer) as [Asked];
      return found;
    },
    close: () => post('close'),
  };
}

/** Stores the indexes of each shape once, for the tenant that asks first. */
class Stored {
  readonly #server: ServerProcess;
  readonly #scale: Scale;
  readonly #ids = new Map<Shape['indexes'], readonly string[]>();

  constructor(server: ServerProcess, options: Options) {
    this.#server = server;
    this.#scale = scaleOf(options);
  }

  async askerOf(
    { indexes, requests }: Shape,
    { apiKey }: NewTenant,
    manner: Pick<AskerOrder, 'lanes' | 'intervalMs' | 'pauseMs' | 'niceness'>,
  ): Promise<Asker> {
    const { url } = this.#server;
    const ids = this.#ids.get(indexes) ?? (await this.#store(indexes, apiKey));
    this.#ids.set(indexes, ids);
    return startAsker({ url, apiKey, requests: requests(ids, this.#scale), ...manner });
  }

  async #store(indexes: Shape['indexes'], apiKey: string): Promise<readonly string[]> {
    const service = { url: this.#server.url, apiKey };
    const ids: string[] = [];
    for (const { documents, ...index } of indexes(this.#scale)) {
      const { id } = await call(service, 'POST', '/v1/indexes', index);
      ids.push(String(id));
      for (let from = 0; from < documents.length; from += documentsPerUpsert) {
        const some = documents.slice(from, from + documentsPerUpsert);
        await call(service, 'POST', `/v1/indexes/${String(id)}/documents`, { documents: some });
      }
    }
    return ids;
  }
}

function scaleOf(options: Options): Scale {
  const { wideDocuments, uploadTexts, windowTokens, exactDocuments, smallIndexes } = options;
  return { wideDocuments, uploadTexts, windowTokens, exactDocuments, smallIndexes };
}

const header = ['attack', 'victim', 'p50 quiet', 'beside', 'ratio', 'p99 quiet', 'beside', 'ratio'];

function lineOf({ attack, victim, quiet, attacked, ratios, samples, failed, attack_statuses }: Cell) {
  const of = (name: keyof Percentiles): readonly string[] => [
    quiet[name].toFixed(1),
    attacked[name].toFixed(1),
    ratios[name].toFixed(1),
  ];
  return [attack, victim, ...of('p50'), ...of('p99'), samples, failed, JSON.stringify(attack_statuses)];
}

function render({ cells, settings: given }: TenantsReport): string {
  const lines = [
    `${given.rounds} rounds of ${given.seconds} s, API threads: ${given.threads}; ms. The ratios are of the calmest round.`,
    ...markdownTable([...header, 'samples', 'failed', 'statuses of the attack'], cells.map(lineOf)),
  ];
  for (const { attack, victim, stages } of cells) {
    if (stages === undefined) continue;
    lines.push('', `${victim} beside ${attack}: medians and p99 of each stage, ms`);
    const cellsOf = (name: string): readonly string[] =>
      [stages.quiet[name], stages.attacked[name]].flatMap((each) =>
        each === undefined ? ['', ''] : [each.p50.toFixed(2), each.p99.toFixed(2)],
      );
    const found = [...new Set([...Object.keys(stages.quiet), ...Object.keys(stages.attacked)])];
    lines.push(
      ...markdownTable(
        ['stage', 'p50 quiet', 'p99 quiet', 'p50 beside', 'p99 beside'],
        found.map((name) => [name, ...cellsOf(name)]),
      ),
    );
  }
  return `${lines.join('\n')}\n`;
}
