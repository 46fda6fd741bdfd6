/**
 * `npm run bench -- host`: what a host must do around the model. The service runs as it always does, with a model that only
 * looks its vectors up, under as many requests as it takes at once; what each thread then spends on a unit of work
 * bounds what one process can give beside a device of any speed. CPU time is counted, not the clock, so that a
 * machine with few cores tells what one with many would give.
 */
import { setTimeout as elapse } from 'node:timers/promises';
import { parseConfig } from '../../src/app/config.ts';
import { modelDirectoryOf } from '../../src/app/model-choice.ts';
import { scratchFolder } from '../lib/endings.ts';
import { closing, openTarget, type Target } from '../lib/service/target.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { beir, integer, names, positiveNumber } from '../lib/options.ts';
import { childProcesses, threadCounters } from '../lib/service/process-counters.ts';
import { Connection, requestText } from '../lib/service/connection.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { sum } from '../lib/statistics.ts';
import { readTexts, type Texts } from '../lib/texts.ts';
import { lookupModel, writeLookupModel } from './lookup-model.ts';

const workNames = ['search', 'score', 'upsert'] as const;
type WorkName = (typeof workNames)[number];

const settings = {
  beir,
  documents: integer(300, 'documents stored before'),
  seconds: positiveNumber(10, 'counted for each kind of work, after half as many'),
  work: names(workNames, 'kinds of work to measure'),
};

export const host = benchmark({
  name: 'host',
  summary: 'what each thread of a host does around a model that costs nothing',
  settings,
  run,
  render,
});

interface HostReport {
  readonly environment: Environment;
  readonly settings: { readonly documents: number; readonly seconds: number; readonly texts: string };
  readonly rows: readonly HostRow[];
}

interface HostRow {
  readonly work: WorkName;
  readonly unit: Work['unit'];
  readonly in_flight: number;
  /** Units a second on this machine, whose cores service and benchmark share. */
  readonly rate: number;
  /** CPU microseconds a unit. */
  readonly microseconds: Readonly<Record<ThreadGroup, number>>;
  /** Units a second at which a thread that a process has one of is busy all the time. */
  readonly ceilings: Readonly<Record<SingleThread, number>>;
}

const singleThreads = ['api_event_loop', 'encoder_event_loop'] as const;
type SingleThread = (typeof singleThreads)[number];
const threadGroups = [...singleThreads, 'session_workers', 'engine', 'other'] as const;
type ThreadGroup = (typeof threadGroups)[number];

interface Work {
  readonly name: WorkName;
  readonly unit: 'search' | 'token' | 'document';
  readonly inFlight: number;
  /** Path and body of the request with this number. */
  readonly request: (number: number) => readonly [string, object];
  /** Units that a request was, by its answer. */
  readonly units: (answer: Answer) => number;
}

interface Answer {
  readonly usage: { readonly input_tokens: number };
}

/** The most documents that one request may have. */
const documentsARequest = 50;
const scoredARequest = 10;
/** One process with one session and its batches, whatever the processor would have. */
const asOnGpu = {
  MAXSIMD_PROVIDER: 'cpu',
  MAXSIMD_ENCODER_PROCESSES: '1',
  MAXSIMD_ENCODER_THREADS: '1',
  MAXSIMD_BATCH_TOKENS: '16384',
};
/** Before the counted seconds: the compilers of both processes are then done with what is asked often. */
const warmUpShare = 0.5;

async function run(options: OptionsOf<typeof settings>): Promise<HostReport> {
  const { documents, seconds, onProgress } = options;
  using models = scratchFolder('lookup');
  await writeLookupModel(await modelDirectoryOf(parseConfig(options.environment)), models.path);
  const texts = await readTexts(documents, options.beir);
  onProgress(`storing ${texts.documents.length} documents`);
  const target = await openTarget({
    texts: texts.documents,
    remote: undefined,
    environment: {
      ...asOnGpu,
      ...options.environment,
      MAXSIMD_MODELS_DIR: models.path,
      MAXSIMD_MODEL: lookupModel,
    },
  });
  const rows = await closing([target], async () => {
    const found: HostRow[] = [];
    for (const work of worksOf(target, texts).filter(({ name }) => options.work.includes(name))) {
      onProgress(`${work.name}, ${work.inFlight} in flight`);
      found.push(await measure(work, target, seconds));
    }
    return found;
  });
  return {
    environment: describeEnvironment(options.command, 'auto', []),
    settings: { documents: texts.documents.length, seconds, texts: texts.name },
    rows,
  };
}

function worksOf({ indexId }: Target, { documents, queries }: Texts): readonly Work[] {
  const some = (from: number, count: number): object[] =>
    Array.from({ length: count }, (_, i) => {
      const at = (from + i) % documents.length;
      return { doc_id: `document-${at}-${i}`, text: documents[at] };
    });
  const query = (number: number): string => queries[number % queries.length] ?? '';
  return [
    {
      name: 'search',
      unit: 'search',
      inFlight: 32,
      request: (number) => [`/v1/indexes/${indexId}/search`, { query: query(number) }],
      units: () => 1,
    },
    {
      name: 'score',
      unit: 'document',
      inFlight: 4,
      request: (number) => [
        '/v1/score',
        { query: query(number), documents: some(number * scoredARequest, scoredARequest) },
      ],
      units: () => scoredARequest,
    },
    {
      name: 'upsert',
      unit: 'token',
      inFlight: 2,
      request: (number) => [
        `/v1/indexes/${indexId}/documents`,
        { documents: some(number * documentsARequest, documentsARequest) },
      ],
      units: ({ usage }) => usage.input_tokens,
    },
  ];
}

async function measure(work: Work, target: Target, seconds: number): Promise<HostRow> {
  let units = 0;
  let number = 0;
  const over = new AbortController();
  const client = async (): Promise<void> => {
    const connection = new Connection(target.url);
    try {
      while (!over.signal.aborted) {
        const [route, body] = work.request(number++);
        const { body: answer } = await connection.exchange(
          requestText(new URL(route, target.url), body, { authorization: `Bearer ${target.apiKey}` }),
        );
        units += work.units(JSON.parse(answer) as Answer);
      }
    } finally {
      over.abort();
      connection.close();
    }
  };
  const counted = async (): Promise<HostRow> => {
    await elapse(warmUpShare * seconds * 1000);
    const before = { at: performance.now(), units, seconds: threadSeconds(target.processId) };
    await elapse(seconds * 1000);
    const after = { at: performance.now(), units, seconds: threadSeconds(target.processId) };
    over.abort();
    const done = after.units - before.units;
    const microseconds = (group: ThreadGroup): number =>
      (1e6 * (after.seconds[group] - before.seconds[group])) / done;
    return {
      work: work.name,
      unit: work.unit,
      in_flight: work.inFlight,
      rate: (1000 * done) / (after.at - before.at),
      microseconds: record(threadGroups, microseconds),
      ceilings: record(singleThreads, (thread) => 1e6 / microseconds(thread)),
    };
  };
  const [row] = await Promise.all([counted(), ...Array.from({ length: work.inFlight }, client)]);
  return row;
}

/** CPU seconds of the service's threads since its start. */
function threadSeconds(apiProcessId: number | undefined): Record<ThreadGroup, number> {
  if (apiProcessId === undefined) throw new Error('the service is no process of this machine');
  const api = threadCounters(apiProcessId);
  const encoders = childProcesses(apiProcessId).map(threadCounters);
  const engine = api.secondsByName.get('maxsimd-engine') ?? 0;
  const workers = sum(encoders.map(({ secondsByName }) => secondsByName.get('WorkerThread') ?? 0));
  const helpers = [api, ...encoders].map(({ secondsByName }) => sum([...secondsByName.values()]));
  return {
    api_event_loop: api.mainSeconds,
    encoder_event_loop: sum(encoders.map(({ mainSeconds }) => mainSeconds)),
    session_workers: workers,
    engine,
    other: sum(helpers) - engine - workers,
  };
}

function render({ rows }: HostReport): string {
  const number = (value: number): string => value.toLocaleString('en', { maximumSignificantDigits: 3 });
  const lines = rows.map(({ work, unit, in_flight: inFlight, rate, microseconds, ceilings }) => [
    `${work}, ${inFlight} in flight: ${number(rate)} ${unit}${unit.endsWith('h') ? 'es' : 's'}/s here; CPU microseconds a ${unit} and, of a thread`,
    '  that a process has one of, the rate at which it is busy all the time:',
    ...threadGroups.map((group) => {
      const ceiling = group in ceilings ? ceilings[group as SingleThread] : undefined;
      const name = group.replaceAll('_', ' ').padEnd(20);
      const spent = number(microseconds[group]).padStart(10);
      return `  ${name}${spent}${ceiling === undefined ? '' : `${number(ceiling)}/s`.padStart(14)}`;
    }),
  ]);
  return `${lines.flat().join('\n')}\n`;
}

function record<Key extends string>(keys: readonly Key[], of: (key: Key) => number): Record<Key, number> {
  return Object.fromEntries(keys.map((key) => [key, of(key)])) as Record<Key, number>;
}
