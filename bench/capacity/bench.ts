/**
 * `npm run bench -- capacity`: the highest open-loop rate a service meets a p99 target at. Rates rise by
 * half from the lowest until one misses the target (or requests fail), then the gap is halved a few times.
 * An interrupt ends the run after the current step; what was measured is still reported.
 */
import { cpus } from 'node:os';
import { describeEnvironment } from '../environment.ts';
import { quantile } from '../statistics.ts';
import { packageTexts } from '../texts.ts';
import { runLoad, type RequestBody, type Sample } from './load.ts';
import { observe, resourcesBetween } from './observe.ts';
import type { CapacityReport, StepReport } from './report.ts';
import { schedule, type Arrival, type Mix, type Operation } from './schedule.ts';
import { openTarget, type Target, type TargetOptions } from './target.ts';
import { verdict } from './verdict.ts';

export interface CapacityOptions {
  readonly mix: Mix;
  readonly p99Ms: number;
  readonly stepSeconds: number;
  /** Rates to measure in order; empty = search for the capacity. */
  readonly rates: readonly number[];
  readonly firstRate: number;
  readonly documents: number;
  readonly seed: number;
  readonly remote: TargetOptions['remote'];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly command: string;
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
}

const rateFactor = 1.5;
const halvings = 3;
const stepsMax = 40;
const failedShareMax = 0.001;
const outstandingMax = 1000;

export async function runCapacityBench(options: CapacityOptions): Promise<CapacityReport> {
  const texts = packageTexts(options.documents);
  options.onProgress(`storing ${texts.length} documents`);
  const target = await openTarget({ texts, remote: options.remote, environment: options.environment });
  try {
    const rows: StepReport[] = [];
    // The first requests pay for cold caches and are not reported.
    await measure(options, target, texts, Math.min(options.firstRate, 5), Math.min(options.stepSeconds, 5));
    await climb(options, async (rate) => {
      const row = await measure(options, target, texts, rate, options.stepSeconds);
      rows.push(row);
      options.onProgress(
        `${rate.toFixed(1)}/s: p50 ${row.latency_ms.p50.toFixed(1)} ms, p99 ${row.latency_ms.p99.toFixed(1)} ms, ${row.failed} failed${row.met_target ? '' : ' (over the target)'}`,
      );
      return row.met_target;
    });
    return reportOf(options, target, texts.length, rows);
  } finally {
    await target.close();
  }
}

/** Calls `meets` with one rate after another. */
async function climb(options: CapacityOptions, meets: (rate: number) => Promise<boolean>): Promise<void> {
  if (options.rates.length > 0) {
    for (const rate of options.rates) {
      if (options.signal.aborted) return;
      await meets(rate);
    }
    return;
  }
  let good = 0;
  let bad = Number.POSITIVE_INFINITY;
  let rate = options.firstRate;
  for (
    let step = 0, halved = 0;
    step < stepsMax && halved <= halvings && !options.signal.aborted;
    step += 1
  ) {
    if (await meets(rate)) good = rate;
    else bad = rate;
    if (bad === Number.POSITIVE_INFINITY) {
      rate *= rateFactor;
    } else {
      rate = (good + bad) / 2;
      halved += 1;
    }
  }
}

async function measure(
  options: CapacityOptions,
  target: Target,
  texts: readonly string[],
  rate: number,
  seconds: number,
): Promise<StepReport> {
  const arrivals = schedule({
    ratePerSecond: rate,
    durationMs: seconds * 1000,
    mix: options.mix,
    seed: options.seed,
  });
  const before = await observe(target.metricsUrl, target.processId);
  const started = performance.now();
  const { samples, sendLagMsMax } = await runLoad({
    url: target.url,
    apiKey: target.apiKey,
    arrivals,
    bodyOf: (arrival) => bodyOf(arrival, target, texts),
    outstandingMax,
    timeoutMs: 60_000,
    signal: options.signal,
  });
  const elapsedSeconds = (performance.now() - started) / 1000;
  const after = await observe(target.metricsUrl, target.processId);
  const failed = samples.filter((sample) => sample.status !== 200).length;
  const latencies = samples.map((sample) => sample.latencyMs);
  const latency = {
    p50: quantile(latencies, 0.5),
    p90: quantile(latencies, 0.9),
    p99: quantile(latencies, 0.99),
    max: Math.max(...latencies),
  };
  return {
    rate_per_second: rate,
    requests: samples.length,
    failed,
    answered_per_second: (samples.length - failed) / elapsedSeconds,
    latency_ms: latency,
    by_operation: byOperation(samples),
    met_target: latency.p99 <= options.p99Ms && failed <= failedShareMax * samples.length,
    send_lag_ms_max: sendLagMsMax,
    resources: resourcesBetween(before, after),
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
      return [
        [
          operation,
          { requests: latencies.length, p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) },
        ],
      ];
    }),
  );
}

/** Queries are runs of words of stored text; new documents replace stored ones, so that the index keeps its size. */
function bodyOf(arrival: Arrival, target: Target, texts: readonly string[]): RequestBody {
  const at = Math.floor(arrival.pick * texts.length);
  const text = texts[at] ?? '';
  const words = text.split(' ');
  const query = words.slice(0, 6 + (at % 10)).join(' ');
  if (arrival.operation === 'search') return post(`/v1/indexes/${target.indexId}/search`, { query });
  if (arrival.operation === 'upsert') {
    return post(`/v1/indexes/${target.indexId}/documents`, {
      documents: [{ doc_id: `document-${at}`, text }],
    });
  }
  const documents = [0, 1, 2, 3, 4].map((i) => ({
    doc_id: String(i),
    text: texts[(at + i) % texts.length] ?? text,
  }));
  return post('/v1/score', { query, documents });
}

function post(path: string, body: unknown): RequestBody {
  return { method: 'POST', path, body: JSON.stringify(body) };
}

function reportOf(
  options: CapacityOptions,
  target: Target,
  documents: number,
  rows: readonly StepReport[],
): CapacityReport {
  const byRate = rows.toSorted((a, b) => a.rate_per_second - b.rate_per_second);
  const lowest = byRate[0];
  if (lowest === undefined) throw new Error('interrupted before the first step ended');
  const failingAt = byRate.findIndex((row) => !row.met_target);
  const failing = byRate[failingAt];
  const best = failingAt === -1 ? byRate.at(-1) : byRate[failingAt - 1];
  return {
    environment: describeEnvironment(options.command, 'auto', [cpus().length]),
    settings: {
      mix: options.mix,
      p99_ms: options.p99Ms,
      step_seconds: options.stepSeconds,
      documents,
      model: target.model,
      seed: options.seed,
    },
    rows,
    capacity_per_second: best?.rate_per_second ?? null,
    verdict: verdict({
      lowest: lowest.resources,
      failing: failing?.resources,
      cores: cpus().length,
      sendLagMsMax: failing?.send_lag_ms_max ?? 0,
      targetP99Ms: options.p99Ms,
    }),
    interrupted: options.signal.aborted,
    ratios: {},
  };
}
