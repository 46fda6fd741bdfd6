/**
 * `npm run bench -- capacity`: the highest open-loop rate at which a service meets a p99 target. Rates rise by half from the lowest
 * until one misses the target twice, or its requests fail. Then the gap is halved a few times. An interrupt ends the run within
 * the current step, and the steps before it are reported.
 */
import { beir, flag, integer, positiveNumber, positiveNumbers, optional } from '../lib/options.ts';
import type { OptionsOf } from '../lib/benchmark.ts';
import { maximum, percentiles, quantile, sum } from '../lib/statistics.ts';
import { multiplied, readTexts, type Texts } from '../lib/texts.ts';
import { watchGpu, type GpuWatch } from './gpu-watch.ts';
import type { Sample } from './load.ts';
import { observe, resourcesBetween, together } from './observe.ts';
import { formatNumber, reportOf, type CapacityReport, type StepReport } from './report.ts';
import { sharesOf } from './requests.ts';
import { parseMix, schedule, type Operation } from './schedule.ts';
import { Senders, senders } from './senders.ts';
import { whenAtRest } from '../lib/service/rest.ts';
import { closing, openTarget, type Target } from '../lib/service/target.ts';

export const settings = {
  mix: {
    takes: 'shares',
    otherwise: 'search=1',
    help: 'shares of the requests: search=8,upsert=1,score=1',
    parse: (text: string) => parseMix(text),
  },
  p99Ms: positiveNumber(100, 'the target: milliseconds at the 99th percentile'),
  stepSeconds: positiveNumber(15, 'how long a rate is held'),
  firstRate: positiveNumber(5, 'requests a second to begin with'),
  rates: positiveNumbers('', 'requests a second to measure in order; none: they rise to the capacity'),
  beir,
  documents: integer(500, 'documents stored before; halves of texts are joined where there are too few'),
  storesAtOnce: integer(1, 'requests at a time that store them'),
  rest: flag('wait until the service has finished its work in the background'),
  senders,
  services: integer(1, 'services of our own, each with its encoders and data, that share the requests'),
  url: optional('url', 'a running service, in place of one of our own'),
  key: optional('key', 'its API key'),
  metricsUrl: optional('url', 'where its metrics are'),
};

export type CapacityOptions = OptionsOf<typeof settings>;

/** Ends a run. */
export interface Control {
  readonly signal: AbortSignal;
}

interface Run {
  readonly options: CapacityOptions & Control;
  readonly targets: readonly Target[];
  readonly texts: Texts;
  readonly gpu: GpuWatch;
  readonly sending: Senders;
}

const rateFactor = 1.5;
const halvings = 3;
const stepsMax = 40;
const failedShareMax = 0.001;
const outstandingMax = 1000;
/** A 99th percentile of fewer requests means nothing, so steps of low rates last longer. */
const requestsMin = 100;

export async function runCapacityBench(options: CapacityOptions & Control): Promise<CapacityReport> {
  const { onProgress, signal } = options;
  if (options.url !== undefined && options.services > 1) throw new Error('--url is of one service');
  const texts = multiplied(await readTexts(options.documents, options.beir), options.documents);
  const rows: StepReport[] = [];
  let model = '';
  let storedSeconds = 0;
  const report = (interrupted: boolean): CapacityReport =>
    reportOf({
      command: options.command,
      settings: {
        mix: options.mix,
        p99_ms: options.p99Ms,
        step_seconds: options.stepSeconds,
        documents: texts.documents.length,
        texts: texts.name,
        model,
        services: options.services,
        senders: sendersOf(options),
      },
      stored_seconds: storedSeconds,
      rows,
      interrupted,
    });
  onProgress(`storing ${texts.documents.length} documents of ${texts.name}`);
  const gpu = watchGpu();
  try {
    const targets: Target[] = [];
    using sending = new Senders(sendersOf(options));
    const run = { options, targets, texts, gpu, sending };
    await closing(targets, async () => {
      const startedMs = performance.now();
      while (targets.length < options.services) targets.push(await openOne(options, texts));
      storedSeconds = (performance.now() - startedMs) / 1000;
      const [first] = targets as [Target, ...Target[]];
      model = first.model;
      if (options.rest) {
        onProgress('waiting until the service is at rest');
        for (const { processId } of targets) await whenAtRest(processId, signal);
      }
      // The first requests pay for cold caches and are not reported.
      await measure(run, Math.min(options.firstRate, 5), Math.min(options.stepSeconds, 5));
      await climb(options, async (rate) => {
        const row = await measure(run, rate, Math.max(options.stepSeconds, requestsMin / rate));
        // Nothing is known of a step that was cut short.
        if (signal.aborted) return undefined;
        onProgress(describe(row));
        return {
          met: row.met_target,
          keep: () => {
            rows.push(row);
            options.save(report(true));
          },
        };
      });
    });
    return report(signal.aborted);
  } catch (error) {
    if (!signal.aborted) throw error;
    if (error !== signal.reason) onProgress((error as Error).message);
    return report(true);
  } finally {
    gpu.close();
  }
}

/** All services get equally many. */
function sendersOf({ senders: count, services }: CapacityOptions): number {
  return Math.ceil(count / services) * services;
}

async function openOne(options: CapacityOptions & Control, { documents }: Texts): Promise<Target> {
  const { url, key: apiKey = '', metricsUrl, storesAtOnce, environment, signal } = options;
  return openTarget({
    texts: documents,
    storesAtOnce,
    remote: url === undefined ? undefined : { url, apiKey, metricsUrl },
    environment,
    signal,
  });
}

/** The outcome of one rate; undefined = interrupted. */
type Attempt = { readonly met: boolean; readonly keep: () => void } | undefined;

/** Tries one rate after another. A rate must miss the target twice to end the climb, because other work on the machine can make one miss. */
export async function climb(
  { rates, firstRate }: Pick<CapacityOptions, 'rates' | 'firstRate'>,
  attempt: (rate: number) => Promise<Attempt>,
): Promise<void> {
  for (const rate of rates) {
    const outcome = await attempt(rate);
    if (outcome === undefined) return;
    outcome.keep();
  }
  if (rates.length > 0) return;
  let good = 0;
  let bad = Number.POSITIVE_INFINITY;
  let rate = firstRate;
  for (let step = 0, halved = 0; step < stepsMax && halved <= halvings; step += 1) {
    const first = await attempt(rate);
    const ends = first?.met === false && bad === Number.POSITIVE_INFINITY;
    const last = ends ? await attempt(rate) : first;
    const outcome = last ?? first;
    outcome?.keep();
    if (outcome === undefined || last === undefined) return;
    if (outcome.met) good = rate;
    else bad = rate;
    if (bad === Number.POSITIVE_INFINITY) {
      rate *= rateFactor;
    } else {
      rate = (good + bad) / 2;
      halved += 1;
    }
  }
}

async function measure(run: Run, rate: number, seconds: number): Promise<StepReport> {
  const { options, targets, texts, gpu, sending } = run;
  const arrivals = schedule({
    ratePerSecond: rate,
    durationMs: seconds * 1000,
    mix: options.mix,
    seed: 1,
  });
  const shares = sharesOf({ arrivals, targets, texts, count: sending.count, outstandingMax });
  const observeAll = async () =>
    Promise.all(targets.map(async ({ metricsUrl, processId }) => observe(metricsUrl, processId)));
  const before = await observeAll();
  gpu.take();
  const started = performance.now();
  const sent = await sending.send(
    shares,
    AbortSignal.any([options.signal, ...targets.map(({ ended }) => ended)]),
  );
  const elapsedSeconds = (performance.now() - started) / 1000;
  for (const { ended } of targets) ended.throwIfAborted();
  const after = await observeAll();
  const gpuUse = gpu.take();
  return stepReport({
    rate,
    samples: sent.flatMap(({ samples }) => samples),
    elapsedSeconds,
    p99Ms: options.p99Ms,
    sendLagMsP99: quantile(
      sent.flatMap(({ sendLagsMs }) => sendLagsMs),
      0.99,
    ),
    resources: {
      ...together(before.map((each, at) => resourcesBetween(each, after[at]!, gpuUse))),
      generatorCores: sum(sent.map(({ cores }) => cores)),
      busiestSenderCores: maximum(sent.map(({ cores }) => cores)),
    },
  });
}

/** Sums up the observations of a step. */
export function stepReport(step: {
  readonly rate: number;
  readonly samples: readonly Sample[];
  readonly elapsedSeconds: number;
  readonly p99Ms: number;
  readonly sendLagMsP99: number;
  readonly resources: StepReport['resources'];
}): StepReport {
  const { samples } = step;
  const good = samples.filter(({ status }) => status === 200);
  const failures: Record<string, number> = {};
  for (const { status } of samples) {
    if (status !== 200) failures[status] = (failures[status] ?? 0) + 1;
  }
  const failed = samples.length - good.length;
  const latencies = good.map(({ latencyMs }) => latencyMs);
  const latency =
    latencies.length === 0 ? null : { ...percentiles(latencies, 50, 90, 99), max: maximum(latencies) };
  return {
    rate_per_second: step.rate,
    seconds: step.elapsedSeconds,
    requests: samples.length,
    failed,
    failures,
    answered_per_second: good.length / step.elapsedSeconds,
    latency_ms: latency,
    by_operation: byOperation(good),
    met_target: latency !== null && latency.p99 <= step.p99Ms && failed <= failedShareMax * samples.length,
    send_lag_ms_p99: step.sendLagMsP99,
    resources: step.resources,
  };
}

function byOperation(samples: readonly Sample[]): StepReport['by_operation'] {
  const operations: readonly Operation[] = ['search', 'upsert', 'score'];
  return Object.fromEntries(
    operations.flatMap((operation) => {
      const latencies = samples
        .filter((sample) => sample.operation === operation)
        .map((sample) => sample.latencyMs);
      if (latencies.length === 0) return [];
      return [[operation, { requests: latencies.length, ...percentiles(latencies, 50, 99) }]];
    }),
  );
}

function describe(row: StepReport): string {
  const { latency_ms: latency } = row;
  const missed = row.met_target ? '' : ' (misses the target)';
  return `${formatNumber(row.rate_per_second)}/s: p50 ${formatNumber(latency?.p50)} ms, p99 ${formatNumber(latency?.p99)} ms, ${row.failed} of ${row.requests} failed${missed}`;
}
