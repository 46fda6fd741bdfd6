/**
 * `npm run bench -- cost`: the processor time of a search and of an upsert, by process and by thread, and their latency at fixed
 * rates, alone and beside an import. Another checkout (`--against`), or several values of a setting (`--each`), are measured in
 * turns in the same run, so that all meet the same machine. `--full` keeps requests open at all times, which shows how many a second the
 * service answers at its bound.
 */
import path from 'node:path';
import { parseConfig } from '../../src/app/config.ts';
import { modelDirectoryOf } from '../../src/app/model-choice.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { scratchFolder } from '../lib/endings.ts';
import { describeEnvironment, root } from '../lib/environment.ts';
import { engineThread } from './observe.ts';
import { makeTrivialModel } from '../lib/model/trivial-model.ts';
import { beir, flag, integer, optional, positiveNumber, positiveNumbers, without } from '../lib/options.ts';
import { childProcesses, processSeconds, threadsOf } from '../lib/service/process-counters.ts';
import { batchSize, call, closing, openTarget, type Target } from '../lib/service/target.ts';
import { sum } from '../lib/statistics.ts';
import { multiplied, readTexts, type Texts } from '../lib/texts.ts';
import {
  render,
  sideReport,
  type CostReport,
  type Imported,
  type Measured,
  type Phase,
} from './cost-report.ts';
import { sharesOf } from './requests.ts';
import { parseMix, schedule } from './schedule.ts';
import { Senders, senders } from './senders.ts';

const settings = {
  against: optional('checkout', 'folder of another checkout, built and installed, to compare with'),
  each: optional('setting=values', 'a side for each value of a setting: MAXSIMD_LOG_LEVEL=info,error'),
  searches: positiveNumbers('20,100,200', 'searches a second to measure'),
  upserts: positiveNumbers('20', 'upserts of one document a second to measure'),
  import: without('leave out the searches beside an import'),
  full: integer(0, 'requests to keep open for the bound; 0 leaves it out', 0),
  mix: {
    takes: 'shares',
    otherwise: 'search=3,upsert=1',
    help: 'shares of the requests at the bound',
    parse: (text: string) => parseMix(text),
  },
  trivial: flag('a network that costs next to nothing, with rows of the shape of the model'),
  seconds: positiveNumber(10, 'how long a rate is held'),
  rounds: integer(3, 'rounds'),
  warmUp: positiveNumber(5, 'seconds of warm-up of each side'),
  documents: integer(100, 'documents stored before'),
  senders,
  beir,
};

type Options = OptionsOf<typeof settings>;

export const cost = benchmark({
  name: 'cost',
  summary: 'processor time and latency of searches and upserts at fixed rates, beside another build',
  settings,
  run,
  render,
});

interface Side {
  readonly name: string;
  readonly target: Target;
  readonly measured: Map<Phase, Measured[]>;
}

const outstandingMax = 1000;
const warmUpOpen = 8;
/** Batches of documents that an import has on the way. */
const importsAtOnce = 2;

async function run(options: Options): Promise<CostReport> {
  const texts = multiplied(await readTexts(options.documents, options.beir), options.documents);
  using folder = scratchFolder('trivial');
  const model = options.trivial
    ? makeTrivialModel(folder.path, await modelDirectoryOf(parseConfig(options.environment)))
    : {};
  using sending = new Senders(options.senders);
  const phases = phasesOf(options);
  const sides: Side[] = [];
  const targets: Target[] = [];
  await closing(targets, async () => {
    for (const { name, checkout, environment } of sidesOf(options)) {
      options.onProgress(`storing ${texts.documents.length} documents: ${name}`);
      const target = await openTarget({
        texts: texts.documents,
        remote: undefined,
        environment: { ...options.environment, ...model, ...environment },
        checkout,
      });
      targets.push(target);
      sides.push({ name, target, measured: new Map(phases.map((phase) => [phase, []])) });
    }
    for (const side of sides) {
      const phase = { name: 'warm-up', mix: options.mix, rate: null, besideImport: false };
      await measure(
        { ...options, full: warmUpOpen, seconds: options.warmUp },
        { side, phase, texts, sending },
      );
    }
    await measureSides(options, sides, { phases, texts, sending });
  });
  return {
    environment: describeEnvironment(options.command, 'auto', []),
    settings: {
      documents: texts.documents.length,
      texts: texts.name,
      model: targets[0]!.model,
      rounds: options.rounds,
      seconds: options.seconds,
      senders: options.senders,
    },
    base: options.against === undefined ? sides[0]!.name : 'against',
    sides: sides.map(sideReport),
  };
}

function sidesOf({ against, each }: Options) {
  const [setting = '', values = ''] = each?.split('=') ?? [];
  const own =
    each === undefined
      ? [{ name: 'this', environment: {} }]
      : values
          .split(',')
          .map((value) => ({ name: `${setting}=${value}`, environment: { [setting]: value } }));
  return [
    ...own.map((side) => ({ ...side, checkout: root })),
    ...(against === undefined ? [] : [{ name: 'against', environment: {}, checkout: path.resolve(against) }]),
  ];
}

function phasesOf({ searches, upserts, import: imports, full, mix }: Options): readonly Phase[] {
  const of = (operation: string, rates: readonly number[], besideImport: boolean): readonly Phase[] =>
    rates.map((rate) => ({
      name: `${operation} ${rate}/s${besideImport ? ' beside an import' : ''}`,
      mix: parseMix(`${operation}=1`),
      rate,
      besideImport,
    }));
  return [
    ...of('search', searches, false),
    ...of('upsert', upserts, false),
    ...(imports ? of('search', searches, true) : []),
    ...(full > 0 ? [{ name: `${full} open`, mix, rate: null, besideImport: false }] : []),
  ];
}

interface Work {
  readonly texts: Texts;
  readonly sending: Senders;
}

async function measureSides(
  options: Options,
  sides: readonly Side[],
  { phases, ...work }: Work & { readonly phases: readonly Phase[] },
): Promise<void> {
  for (let round = 0; round < options.rounds; round++) {
    for (const phase of phases) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const measured = await measure(options, { side, phase, ...work });
        side.measured.get(phase)!.push(measured);
        const { samples, processor, seconds } = measured;
        options.onProgress(
          `round ${round + 1}, ${phase.name}, ${side.name}: ${samples.length} requests, ${(processor.api! / seconds).toFixed(2)} cores of the api process`,
        );
      }
    }
  }
}

async function measure(
  { full, seconds }: Pick<Options, 'full' | 'seconds'>,
  { side: { target }, phase, texts, sending }: Work & { readonly side: Side; readonly phase: Phase },
): Promise<Measured> {
  const durationMs = seconds * 1000;
  const { mix, rate } = phase;
  const shares = sharesOf({
    // A full load repeats its requests.
    arrivals: schedule({ ratePerSecond: rate ?? 1000, durationMs, mix, seed: 1 }),
    targets: [target],
    texts,
    count: sending.count,
    outstandingMax: rate === null ? full : outstandingMax,
  }).map((share) => (rate === null ? { ...share, full: { forMs: durationMs } } : share));
  const over = new AbortController();
  const importing = phase.besideImport ? importUntil(target, texts.documents, over.signal) : undefined;
  const before = processorSeconds(target.processId!);
  const startedMs = performance.now();
  const sent = await sending.send(shares, target.ended);
  const after = processorSeconds(target.processId!);
  const elapsedSeconds = (performance.now() - startedMs) / 1000;
  over.abort();
  const imported = await importing;
  target.ended.throwIfAborted();
  return {
    samples: sent.flatMap(({ samples }) => samples),
    sendLagsMs: sent.flatMap(({ sendLagsMs }) => sendLagsMs),
    senderCores: sent.map(({ cores }) => cores),
    seconds: elapsedSeconds,
    processor: Object.fromEntries(
      Object.entries(after).map(([name, total]) => [name, total - (before[name] ?? 0)]),
    ),
    imported,
  };
}

/** Stores the documents again and again. A batch that fails is followed by the next one. */
async function importUntil(
  target: Target,
  documents: readonly string[],
  signal: AbortSignal,
): Promise<Imported> {
  const startedMs = performance.now();
  const size = Math.min(batchSize, documents.length);
  let stored = 0;
  let failed = 0;
  let next = 0;
  const storeInTurn = async (): Promise<void> => {
    while (!signal.aborted) {
      const from = next;
      next += size;
      const places = Array.from({ length: size }, (_, i) => (from + i) % documents.length);
      const batch = places.map((at) => ({ doc_id: `document-${at}`, text: documents[at] }));
      try {
        await call(target, 'POST', `/v1/indexes/${target.indexId}/documents`, { documents: batch });
        stored += size;
      } catch {
        failed += size;
      }
    }
  };
  await Promise.all(Array.from({ length: importsAtOnce }, storeInTurn));
  return { perSecond: (stored * 1000) / (performance.now() - startedMs), failed };
}

/** CPU seconds of the api process and its encoders, and of the threads of each. Threads of one name count together, but each worker alone. */
function processorSeconds(apiId: number): Readonly<Record<string, number>> {
  const encoderIds = childProcesses(apiId);
  const seconds: Record<string, number> = {
    api: processSeconds(apiId),
    encoders: sum(encoderIds.map(processSeconds)),
  };
  for (const [owner, id] of [
    ['api', apiId] as const,
    ...encoderIds.map((each) => ['encoders', each] as const),
  ]) {
    let workers = 0;
    for (const { name, seconds: used } of threadsOf(id)) {
      const key = `${owner}: ${name === 'WorkerThread' ? `${name} ${++workers}` : name}`;
      seconds[key] = (seconds[key] ?? 0) + used;
    }
  }
  seconds['api without engine'] = seconds['api']! - (seconds[`api: ${engineThread}`] ?? 0);
  return seconds;
}
