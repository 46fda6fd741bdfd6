/**
 * `npm run bench -- stages`: where the time of one request goes. One client asks a warm service one query after another over a
 * kept connection, or stores one document after another. The request log of the service has the time of each stage. The rest of
 * the client's wait is HTTP. Other servers can be measured in turns of a round each, so that all meet the same machine:
 * `--against` a second checkout, `--node` a node with PostgreSQL, SeaweedFS and Redis on this machine, and `--traces` a server
 * that sends the spans of every request to a collector.
 *
 * Stages of one request follow one another, so their times add up to the client's wait. *Overhead* is that sum less the model's
 * run and the engine: the cost of the service itself.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { closing, openTarget, type Target, type TargetOptions } from '../lib/service/target.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { beir, flag, integer, optional } from '../lib/options.ts';
import { startSharedServices } from '../../deploy/local/cluster.ts';
import { scratchFolder } from '../lib/endings.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { median, pairedRatios, percentiles } from '../lib/statistics.ts';
import { columns } from '../lib/table.ts';
import { readTexts } from '../lib/texts.ts';
import { Connection, requestText } from '../lib/service/connection.ts';
import { RequestLog, type LoggedRequest } from './request-log.ts';

const settings = {
  beir,
  documents: integer(300, 'documents stored before'),
  queries: integer(100, 'queries of a round'),
  rounds: integer(6, 'rounds'),
  warmUp: integer(1000, 'searches before the first round, at least'),
  against: optional('checkout', 'folder of another checkout, built and installed, to compare with'),
  node: flag('compare with a node of a cluster'),
  traces: flag('compare with a server that traces every request'),
  upserts: flag('measure upserts of one document each, not searches'),
};

type Options = OptionsOf<typeof settings>;

export const stages = benchmark({
  name: 'stages',
  summary: 'where the time of one search goes',
  settings,
  run,
  render,
});

interface StagesReport {
  readonly environment: Environment;
  readonly settings: {
    readonly documents: number;
    readonly searches: number;
    readonly warm_up: number;
    readonly texts: string;
  };
  readonly sides: readonly SideReport[];
  /** Median overhead of a round, the other checkout's over this one's. */
  readonly ratios: {
    readonly overhead_against?: number;
    readonly node_adds_ms?: number;
    readonly traces_add_ms?: number;
  };
}

type SideName = 'this' | 'against' | 'node' | 'traced';

interface SideReport {
  readonly name: SideName;
  /** Milliseconds. */
  readonly stages: Readonly<
    Record<Stage | 'overhead' | 'total', { readonly p50: number; readonly p95: number }>
  >;
  /** Median overhead of each round. */
  readonly overhead_rounds: readonly number[];
  /** Median time of each round. */
  readonly total_rounds: readonly number[];
  /** One for every search, in order. */
  readonly splits: readonly Split[];
}

/**
 * In the order of a request. `transport` is gRPC both ways, with the work of both processes for it. `snapshot` is the time of a
 * search beside the engine's own stages. A node asks then which generation holds.
 */
const stageNames = [
  'http',
  'admission',
  'body',
  'index',
  'transport',
  'tokenize',
  'queue',
  'run',
  'snapshot',
  'engine',
  'resolve',
  'usage',
  'append',
  'commit',
  'service',
  'answer',
] as const;
type Stage = (typeof stageNames)[number];

/** Milliseconds of one search. */
type Split = Readonly<Record<Stage | 'overhead' | 'total', number>>;

interface Side {
  readonly name: SideReport['name'];
  readonly target: Target;
  readonly logged: RequestLog;
  readonly rounds: Split[][];
}

async function run(options: Options): Promise<StagesReport> {
  const { name: texts, documents, queries: found } = await readTexts(options.documents, options.beir);
  const queries = Array.from({ length: options.queries }, (_, i) => found[i % found.length]!);
  const sides: Side[] = [];
  const targets: Target[] = [];
  await closing(targets, async () => {
    for (const name of [
      'this',
      ...(options.against === undefined ? [] : (['against'] as const)),
      ...(options.node ? (['node'] as const) : []),
      ...(options.traces ? (['traced'] as const) : []),
    ] as const) {
      options.onProgress(`storing ${documents.length} documents: ${name}`);
      const side = await openSide(options, name, documents);
      targets.push(side.target);
      sides.push(side);
    }
    await measureSides(options, sides, queries);
  });
  const reports = sides.map(sideReport);
  const [own] = reports;
  const against = reports.find(({ name }) => name === 'against');
  /** Milliseconds, the median of the rounds. */
  const added = (name: SideName): number | undefined => {
    const side = reports.find((report) => report.name === name);
    return own === undefined || side === undefined
      ? undefined
      : median(side.total_rounds.map((total, round) => total - (own.total_rounds[round] ?? Number.NaN)));
  };
  const [nodeAdds, tracesAdd] = [added('node'), added('traced')];
  return {
    environment: describeEnvironment(options.command, 'auto', []),
    settings: {
      documents: documents.length,
      searches: queries.length * options.rounds,
      warm_up: options.warmUp,
      texts,
    },
    sides: reports,
    ratios: {
      ...(own !== undefined &&
        against !== undefined && {
          overhead_against: median(pairedRatios(against.overhead_rounds, own.overhead_rounds)),
        }),
      ...(nodeAdds === undefined ? {} : { node_adds_ms: nodeAdds }),
      ...(tracesAdd === undefined ? {} : { traces_add_ms: tracesAdd }),
    },
  };
}

async function openSide(
  { environment, against, onProgress }: Options,
  name: SideName,
  documents: readonly string[],
): Promise<Side> {
  const logged = new RequestLog(onProgress);
  const open = (more: Partial<TargetOptions>): Promise<Target> =>
    openTarget({
      texts: documents,
      remote: undefined,
      environment,
      onLogLine: (line) => logged.add(line),
      ...more,
    });
  const openers: Readonly<Record<SideName, () => Promise<Target>>> = {
    this: () => open({}),
    against: () => open(against === undefined ? {} : { checkout: path.resolve(against) }),
    node: () => openNode(environment, open),
    traced: () => openTraced(environment, open),
  };
  const target = await openers[name]();
  target.ended.addEventListener('abort', () => logged.end(target.ended.reason as Error));
  return { name, target, logged, rounds: [] };
}

/** A node, with the services that it shares with no other. */
async function openNode(
  environment: Options['environment'],
  open: (more: Partial<TargetOptions>) => Promise<Target>,
): Promise<Target> {
  const folder = scratchFolder('cluster');
  await using opening = new AsyncDisposableStack();
  opening.defer(() => folder[Symbol.dispose]());
  const shared = opening.adopt(await startSharedServices(folder.path), (services) => services.stop());
  const target = await open({ environment: { ...environment, ...shared.environment } });
  const services = opening.move();
  return {
    ...target,
    async close() {
      await target.close();
      await services.disposeAsync();
    },
  };
}

/** A server with a collector that takes all and keeps nothing. */
async function openTraced(
  environment: Options['environment'],
  open: (more: Partial<TargetOptions>) => Promise<Target>,
): Promise<Target> {
  const collector = createServer((request, response) => {
    request.resume().once('end', () => response.end('{}'));
  });
  const listening = Promise.withResolvers<void>();
  collector.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  const { port } = collector.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/v1/traces`;
  const target = await open({ environment: { ...environment, MAXSIMD_TRACES_URL: url } });
  return {
    ...target,
    async close() {
      await target.close();
      collector.closeAllConnections();
      collector.close();
    },
  };
}

/** Fills the rounds of the sides. */
async function measureSides(
  { warmUp, rounds, upserts, onProgress }: Options,
  sides: readonly Side[],
  queries: readonly string[],
): Promise<void> {
  // The compilers of both processes go on optimising for about a thousand searches.
  for (let asked = 0; asked < warmUp; asked += queries.length) {
    for (const side of sides) await measureRound(side, queries, upserts);
  }
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? sides : sides.toReversed();
    for (const side of order) {
      const splits = await measureRound(side, queries, upserts);
      side.rounds.push(splits);
      onProgress(
        `round ${round + 1}, ${side.name}: overhead ${median(splits.map(({ overhead }) => overhead)).toFixed(2)} ms`,
      );
    }
  }
}

function render({ sides, settings: shape, ratios }: StagesReport): string {
  const lines = [
    `${shape.searches} requests, texts of ${shape.texts}, ${shape.documents} documents; ms, p50 (p95)`,
  ];
  const cell = ({ p50, p95 }: { readonly p50: number; readonly p95: number }): string =>
    `${p50.toFixed(3)} (${p95.toFixed(3)})`;
  const line = (cells: readonly string[]): string => columns(cells, { first: 12, others: 20 });
  lines.push(line(['stage', ...sides.map(({ name }) => name)]));
  for (const stage of [...stageNames, 'overhead', 'total'] as const) {
    lines.push(line([stage, ...sides.map((side) => cell(side.stages[stage]))]));
  }
  if (ratios.node_adds_ms !== undefined)
    lines.push(`a node adds ${ratios.node_adds_ms.toFixed(2)} ms (median of the rounds)`);
  if (ratios.traces_add_ms !== undefined)
    lines.push(`traces add ${ratios.traces_add_ms.toFixed(2)} ms (median of the rounds)`);
  if (ratios.overhead_against !== undefined)
    lines.push(`overhead, against / this: ${ratios.overhead_against.toFixed(2)}`);
  return `${lines.join('\n')}\n`;
}

/** Runs the queries one after another. */
async function measureRound(
  { target, logged }: Side,
  queries: readonly string[],
  upserts: boolean,
): Promise<Split[]> {
  const connection = new Connection(target.url);
  const splits: Split[] = [];
  try {
    for (const [place, query] of queries.entries()) {
      const text = upserts ? upsertText(target, query, `own ${place}`) : searchText(target, query);
      const { requestId, totalMs } = await connection.exchange(text);
      splits.push(splitOf(totalMs, await logged.take(requestId)));
    }
  } finally {
    connection.close();
  }
  return splits;
}

function searchText({ indexId, apiKey, url }: Target, query: string): string {
  return requestText(
    new URL(`/v1/indexes/${indexId}/search`, url),
    { query },
    { authorization: `Bearer ${apiKey}` },
  );
}

function upsertText({ indexId, apiKey, url }: Target, text: string, docId: string): string {
  return requestText(
    new URL(`/v1/indexes/${indexId}/documents`, url),
    { documents: [{ doc_id: docId, text }] },
    { authorization: `Bearer ${apiKey}` },
  );
}

function splitOf(totalMs: number, { timings_ms: timings }: LoggedRequest): Split {
  const of = (stage: string): number => timings[stage] ?? 0;
  const served = of('admission') + of('body') + of('service') + of('answer');
  const inEncoder = of('encoder_tokenize') + of('encoder_queue') + of('encoder_run');
  const inEngine = of('engine_queue') + of('engine_filter') + of('engine_candidates') + of('engine_exact');
  const waited = ['index', 'count', 'encode', 'engine', 'resolve', 'usage', 'append', 'commit'];
  return {
    http: totalMs - served,
    admission: of('admission'),
    body: of('body'),
    index: of('index'),
    transport: of('encode') - inEncoder,
    tokenize: of('encoder_tokenize'),
    queue: of('encoder_queue'),
    run: of('encoder_run'),
    snapshot: of('engine') - inEngine,
    engine: inEngine,
    resolve: of('resolve'),
    usage: of('usage'),
    append: of('append'),
    commit: of('commit'),
    service: waited.reduce((left, stage) => left - of(stage), of('service')),
    answer: of('answer'),
    overhead: totalMs - of('encoder_run') - inEngine,
    total: totalMs,
  };
}

function sideReport({ name, rounds }: Side): SideReport {
  const all = rounds.flat();
  const of = (stage: keyof Split) =>
    percentiles(
      all.map((split) => split[stage]),
      50,
      95,
    );
  return {
    name,
    stages: Object.fromEntries(
      [...stageNames, 'overhead' as const, 'total' as const].map((stage) => [stage, of(stage)]),
    ) as SideReport['stages'],
    splits: all,
    overhead_rounds: rounds.map((splits) => median(splits.map(({ overhead }) => overhead))),
    total_rounds: rounds.map((splits) => median(splits.map(({ total }) => total))),
  };
}
