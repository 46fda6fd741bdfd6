/**
 * `npm run bench -- overload`: what becomes of the service when more is asked than it can answer, and when it runs for
 * long. Phases: a caller alone; as many callers as it takes to keep the service busy (the peak); a steady rate of a multiple
 * of the peak, whatever becomes of the answers; a caller alone again, until it is as fast as before. With
 * `--soak-minutes` a share of the peak follows for so long, while memory and descriptors are watched.
 */
import { readdirSync } from 'node:fs';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { runLoad } from '../capacity/load.ts';
import { parseMix, schedule } from '../capacity/schedule.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { integer, positiveNumber } from '../lib/options.ts';
import { exchange } from '../lib/service/exchange.ts';
import { childProcesses, memoryBytes, processCounters } from '../lib/service/process-counters.ts';
import { closing, openTarget, type Target } from '../lib/service/target.ts';
import { maximum, mean, median, percentiles, sum } from '../lib/statistics.ts';
import { packageTexts } from '../lib/texts.ts';

const settings = {
  seconds: integer(20, 'of the peak and of the overload'),
  callers: integer(16, 'that keep the service busy'),
  factor: positiveNumber(3, 'rate of the overload, in peaks'),
  soakMinutes: integer(0, 'of a share of the peak after all this', 0),
  soakShare: positiveNumber(0.3, 'that share'),
};

type Options = OptionsOf<typeof settings>;

export const overload = benchmark({
  name: 'overload',
  summary: 'what becomes of the service beyond its peak, and over time',
  settings,
  run,
  render,
});

interface OverloadReport {
  readonly environment: Environment;
  readonly quiet_p50_ms: number;
  readonly peak_per_second: number;
  /** Processor time of the service for an answer: beside other work on the machine it says more than rates do. */
  readonly peak_processor_ms: number;
  readonly overload: {
    readonly sent_per_second: number;
    readonly answered_per_second: number;
    /** For an answer, with what its refusals took. */
    readonly processor_ms: number;
    readonly statuses: Readonly<Record<string, number>>;
    /** Times of answers with an error status; null when there is none. */
    readonly refusal_ms: { readonly p50: number; readonly p99: number } | null;
    readonly answer_p99_ms: number;
    /** How late the load itself was: times count from when a request was due. */
    readonly send_lag_p99_ms: number;
  };
  /** Until a second's median is at most twice the quiet one; null: not within a minute. */
  readonly recovery_seconds: number | null;
  readonly soak: Soak | null;
}

interface Soak {
  readonly minutes: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly resident_mib: readonly number[];
  readonly descriptors: readonly number[];
  /** Slope of a line through the second half of what was resident, as a share of its mean. */
  readonly resident_growth_per_hour: number;
}

/** More than the encoders queue; a request that finds no place counts as unanswered. */
const outstandingMax = 3000;
const recoverySecondsMax = 60;
const watchMs = 5000;
const texts = packageTexts(50);

async function run(options: Options): Promise<OverloadReport> {
  const target = await openTarget({ texts, remote: undefined, environment: options.environment });
  return closing([target], async () => {
    await callers(target, options.callers, 2);
    const quiet = await callers(target, 1, Math.min(5, options.seconds));
    const idleSeconds = processorSeconds(target);
    const peak = await callers(target, options.callers, options.seconds);
    const peakProcessorMs = (1000 * (processorSeconds(target) - idleSeconds)) / peak.length;
    const peakPerSecond = peak.length / options.seconds;
    options.onProgress(`alone ${median(quiet).toFixed(1)} ms; peak ${peakPerSecond.toFixed(1)} a second`);
    const overloaded = await load(target, {
      ratePerSecond: options.factor * peakPerSecond,
      seconds: options.seconds,
      mix: 'search=1',
    });
    options.onProgress(JSON.stringify(overloaded));
    const recovery = await recoverySeconds(target, 2 * median(quiet));
    return {
      environment: describeEnvironment(options.command, 'auto', []),
      quiet_p50_ms: median(quiet),
      peak_per_second: peakPerSecond,
      peak_processor_ms: peakProcessorMs,
      overload: overloaded,
      recovery_seconds: recovery,
      soak: options.soakMinutes === 0 ? null : await soak(target, options, options.soakShare * peakPerSecond),
    };
  });
}

function render({
  quiet_p50_ms,
  peak_per_second,
  peak_processor_ms,
  overload: beyond,
  recovery_seconds,
  soak: long,
}: OverloadReport): string {
  const { answered_per_second: answered, refusal_ms: refusal } = beyond;
  return [
    `alone: ${quiet_p50_ms.toFixed(1)} ms; peak: ${peak_per_second.toFixed(1)} a second`,
    `sent ${beyond.sent_per_second.toFixed(1)} a second: ${answered.toFixed(1)} answered (${((100 * answered) / peak_per_second).toFixed(0)}% of the peak), statuses ${JSON.stringify(beyond.statuses)}`,
    `processor time for an answer: ${peak_processor_ms.toFixed(2)} ms at the peak, ${beyond.processor_ms.toFixed(2)} ms beyond it with its refusals`,
    `refusals: ${refusal === null ? 'none' : `p50 ${refusal.p50.toFixed(1)} ms, p99 ${refusal.p99.toFixed(1)} ms`}; recovery: ${recovery_seconds ?? 'none'} s`,
    ...(long === null
      ? []
      : [
          `soak of ${long.minutes} min: statuses ${JSON.stringify(long.statuses)}; resident ${long.resident_mib.at(0)?.toFixed(0)} to ${long.resident_mib.at(-1)?.toFixed(0)} MiB, ${(100 * long.resident_growth_per_hour).toFixed(2)}% an hour; descriptors ${long.descriptors.at(0)} to ${long.descriptors.at(-1)}`,
        ]),
    '',
  ].join('\n');
}

function searchOf(target: Target, pick: number): { readonly path: string; readonly body: string } {
  const text = texts[Math.floor(pick * texts.length)] ?? '';
  const body = JSON.stringify({ query: text.slice(0, 80) });
  return { path: `/v1/indexes/${target.indexId}/search`, body };
}

/** Counts from its start, where it is a process of ours. */
function processorSeconds({ processId }: Target): number {
  if (processId === undefined) return 0;
  return sum([processId, ...childProcesses(processId)].map((id) => processCounters(id).cpuSeconds));
}

/** A stored document again, so that the index keeps its size. */
function replacementOf(target: Target, pick: number): { readonly path: string; readonly body: string } {
  const at = Math.floor(pick * texts.length);
  const body = JSON.stringify({ documents: [{ doc_id: `document-${at}`, text: texts[at] }] });
  return { path: `/v1/indexes/${target.indexId}/documents`, body };
}

/** Each sends one search after another; times of those answered. */
async function callers(target: Target, count: number, seconds: number): Promise<readonly number[]> {
  const times: number[] = [];
  const until = performance.now() + seconds * 1000;
  const agent = new Agent({ keepAlive: true });
  const one = async (place: number): Promise<void> => {
    for (let n = place; performance.now() < until; n += count) {
      const { path, body } = searchOf(target, (n % texts.length) / texts.length);
      const startedAt = performance.now();
      const { status } = await exchange({
        agent,
        url: new URL(path, target.url),
        apiKey: target.apiKey,
        body,
      });
      if (status === 200) times.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: count }, (_, place) => one(place)));
  agent.destroy();
  return times;
}

async function load(
  target: Target,
  { ratePerSecond, seconds, mix }: { ratePerSecond: number; seconds: number; mix: string },
): Promise<OverloadReport['overload']> {
  const arrivals = schedule({ ratePerSecond, durationMs: seconds * 1000, mix: parseMix(mix), seed: 1 });
  let answeredInTime = 0;
  const idleSeconds = processorSeconds(target);
  const startedAt = performance.now();
  const { samples, sendLagsMs } = await runLoad({
    url: target.url,
    apiKey: target.apiKey,
    arrivals,
    bodyOf: ({ operation, pick }) =>
      operation === 'upsert' ? replacementOf(target, pick) : searchOf(target, pick),
    outstandingMax,
    timeoutMs: 60_000,
    coarse: true,
    signal: target.ended,
    onSample: ({ status }) => {
      if (status === 200 && performance.now() - startedAt <= seconds * 1000) answeredInTime += 1;
    },
  });
  const statuses: Record<string, number> = {};
  for (const { status } of samples) statuses[status] = (statuses[status] ?? 0) + 1;
  const times = (wanted: (status: number) => boolean): readonly number[] =>
    samples.filter(({ status }) => wanted(status)).map(({ latencyMs }) => latencyMs);
  const refusals = times((status) => status >= 400);
  return {
    sent_per_second: arrivals.length / seconds,
    answered_per_second: answeredInTime / seconds,
    processor_ms: (1000 * (processorSeconds(target) - idleSeconds)) / (statuses['200'] ?? 0),
    statuses,
    refusal_ms: refusals.length === 0 ? null : percentiles(refusals, 50, 99),
    answer_p99_ms: percentiles(
      times((status) => status === 200),
      99,
    ).p99,
    send_lag_p99_ms: percentiles(sendLagsMs, 99).p99,
  };
}

async function recoverySeconds(target: Target, medianMsMax: number): Promise<number | null> {
  for (let second = 1; second <= recoverySecondsMax; second += 1) {
    const times = await callers(target, 1, 1);
    if (times.length > 0 && median(times) <= medianMsMax) return second;
  }
  return null;
}

async function soak(
  target: Target,
  { soakMinutes, onProgress }: Options,
  ratePerSecond: number,
): Promise<Soak> {
  const resident: number[] = [];
  const descriptors: number[] = [];
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      const processes = [target.processId ?? 0, ...childProcesses(target.processId ?? 0)];
      resident.push(sum(processes.map((id) => memoryBytes(id, 'RssAnon'))) / 2 ** 20);
      descriptors.push(sum(processes.map((id) => readdirSync(`/proc/${id}/fd`).length)));
      if (resident.length % 12 === 0)
        onProgress(`${resident.at(-1)?.toFixed(0)} MiB, ${descriptors.at(-1)} descriptors`);
      await delay(watchMs);
    }
  })();
  const outcome = await load(target, { ratePerSecond, seconds: soakMinutes * 60, mix: 'search=9,upsert=1' });
  over.abort();
  await watching;
  return {
    minutes: soakMinutes,
    statuses: outcome.statuses,
    resident_mib: resident,
    descriptors,
    resident_growth_per_hour: growthPerHour(resident.slice(Math.floor(resident.length / 2))),
  };
}

/** Slope of the least squares' line over the mean, for values `watchMs` apart. */
function growthPerHour(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const square = maximum([1, sum(values.map((_, at) => (at - middle) ** 2))]);
  const slope = sum(values.map((value, at) => (at - middle) * value)) / square;
  return ((slope / mean(values)) * 3_600_000) / watchMs;
}
