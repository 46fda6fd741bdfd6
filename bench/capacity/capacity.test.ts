/** The calculations behind a capacity report. */
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { climb, stepReport } from './bench.ts';
import { parseGpuLine } from './gpu-watch.ts';
import { runLoad, type Sample } from './load.ts';
import type { StepResources } from './observe.ts';
import { reportOf, type CapacityReport, type StepReport } from './report.ts';
import { parseMix, schedule } from './schedule.ts';
import { Senders, type Share } from './senders.ts';
import { verdict } from './verdict.ts';

const resources = (changes: Partial<StepResources> = {}): StepResources => ({
  stagesMs: {},
  eventLoopCores: 0.1,
  engineCores: 0.05,
  apiCores: 0.2,
  encoderCores: 0.2,
  encoderLoopCores: 0.1,
  machineCores: 0.5,
  generatorCores: 0.1,
  busiestSenderCores: 0.1,
  gpu: undefined,
  ...changes,
});

const step = (changes: Partial<StepReport> = {}): StepReport => ({
  rate_per_second: 5,
  seconds: 1,
  requests: 5,
  failed: 0,
  failures: {},
  answered_per_second: 5,
  latency_ms: { p50: 1, p90: 2, p99: 3, max: 4 },
  by_operation: {},
  met_target: true,
  send_lag_ms_p99: 0,
  resources: resources(),
  ...changes,
});

const reportWith = (rows: readonly StepReport[], interrupted = false): CapacityReport => ({
  ...reportOf({
    command: 'npm run bench -- capacity --mix "search=1"',
    settings: {
      mix: parseMix('search=1'),
      p99_ms: 100,
      step_seconds: 1,
      documents: 1,
      texts: 'texts',
      model: 'm/1',
      services: 1,
      senders: 1,
    },
    stored_seconds: 1,
    rows,
    interrupted,
  }),
});

describe('a schedule', () => {
  const options = { ratePerSecond: 200, durationMs: 20_000, mix: parseMix('search=3,upsert=1'), seed: 7 };

  it('offers the rate in the shares asked for, in order of time', () => {
    const arrivals = schedule(options);
    // Five standard deviations of a Poisson count.
    expect(Math.abs(arrivals.length - 4000)).toBeLessThan(5 * Math.sqrt(4000));
    const searches = arrivals.filter(({ operation }) => operation === 'search').length;
    expect(searches / arrivals.length).toBeCloseTo(0.75, 1);
    expect(arrivals.some(({ operation }) => operation === 'score')).toBe(false);
    expect(arrivals.map(({ dueMs }) => dueMs)).toEqual(
      arrivals.map(({ dueMs }) => dueMs).toSorted((a, b) => a - b),
    );
  });

  it('is the same for a seed and another for another', () => {
    expect(schedule(options)).toEqual(schedule(options));
    expect(schedule({ ...options, seed: 8 })).not.toEqual(schedule(options));
  });

  it.each(['', 'search', 'search=-1', 'walk=1', 'search=0'])('refuses the mix "%s"', (mix) => {
    expect(() => parseMix(mix)).toThrow(/bad mix/);
  });
});

/** Answers `{}` as `onRequest` says, and gives its address. */
async function serve(onRequest: RequestListener): Promise<string> {
  const server = createServer(onRequest);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function hold(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe('the load', () => {
  it('is sent when it is due, and its latency counts from then, however long the service takes', async () => {
    const arrivals = schedule({ ratePerSecond: 200, durationMs: 900, mix: parseMix('search=1'), seed: 3 });
    const held: ServerResponse[] = [];
    let [begunAt, answeredAt] = [0, 0];
    const url = await serve((_request, response) => {
      if (held.length === 0) {
        begunAt = performance.now() - arrivals[0]!.dueMs;
        // This thread sends, too: what is due meanwhile is sent late.
        hold(1_000);
      }
      held.push(response);
      // A client that waits for an answer waits for ever.
      if (held.length < arrivals.length) return;
      answeredAt = performance.now();
      for (const each of held) each.end('{}');
    });
    const { samples } = await runLoad({
      url,
      apiKey: 'key',
      arrivals,
      bodyOf: () => ({ path: '/', body: '{}' }),
      outstandingMax: 1000,
      timeoutMs: 300_000,
      signal: new AbortController().signal,
    });
    expect(samples.map(({ status }) => status)).toEqual(arrivals.map(() => 200));
    for (const { dueMs, latencyMs } of samples)
      expect(dueMs + latencyMs).toBeGreaterThanOrEqual(answeredAt - begunAt);
  });

  const share = (url: string): Share => ({
    url,
    apiKey: 'key',
    requests: [1, 2, 3].map((dueMs) => ({ operation: 'search', dueMs, path: `/${dueMs}`, body: '{}' })),
    outstandingMax: 3,
    timeoutMs: 5000,
  });

  it('is sent by several processes, each its own share', async () => {
    const paths: string[] = [];
    const url = await serve((request, response) => {
      paths.push(request.url ?? '');
      response.end('{}');
    });
    using sending = new Senders(2);
    const sent = await sending.send([share(url), share(url)], new AbortController().signal);
    expect(paths.toSorted()).toEqual(['/1', '/1', '/2', '/2', '/3', '/3']);
    for (const { samples, cores } of sent) {
      expect(samples.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(cores).toBeGreaterThan(0);
    }
  });

  it('ends when it is stopped, with the answers that it has', async () => {
    const stop = new AbortController();
    const url = await serve((_request, response) => {
      response.end('{}');
      stop.abort();
    });
    using sending = new Senders(1);
    // A minute of requests.
    const requests = Array.from({ length: 6_000 }, (_, at) => ({
      operation: 'search' as const,
      dueMs: at * 10,
      path: '/',
      body: '{}',
    }));
    const [sent] = await sending.send([{ ...share(url), requests }], stop.signal);
    expect(sent!.samples.length).toBeGreaterThan(0);
    expect(sent!.samples.length).toBeLessThan(requests.length);
  });

  it('fails when a sender ends by itself', async () => {
    const sending = new Senders(1);
    sending[Symbol.dispose]();
    await expect(sending.send([share('http://127.0.0.1:1')], new AbortController().signal)).rejects.toThrow(
      /ended by itself|Channel closed/,
    );
  });
});

describe('a step', () => {
  const sample = (status: number, latencyMs: number): Sample => ({
    operation: 'search',
    dueMs: 0,
    latencyMs,
    status,
  });
  const of = (samples: readonly Sample[]): StepReport =>
    stepReport({
      rate: 10,
      samples,
      elapsedSeconds: 2,
      p99Ms: 100,
      sendLagMsP99: 0,
      resources: resources(),
    });

  it('is not made faster by requests that were refused at once, and misses for them', () => {
    const good = Array.from({ length: 98 }, () => sample(200, 80));
    expect(of(good)).toMatchObject({ met_target: true, latency_ms: { p50: 80 } });
    const refused = of([...good, sample(503, 1), sample(0, 1)]);
    expect(refused).toMatchObject({
      met_target: false,
      failed: 2,
      failures: { '503': 1, '0': 1 },
      latency_ms: { p50: 80 },
      answered_per_second: 49,
    });
  });

  it('may have more answers than a call takes arguments', () => {
    expect(of(Array.from({ length: 200_000 }, (_, i) => sample(200, i))).latency_ms?.max).toBe(199_999);
  });

  it('without a single answer has no latency and misses', () => {
    expect(of([sample(0, 5)])).toMatchObject({ met_target: false, latency_ms: null });
  });
});

describe('the climb', () => {
  /** Rates kept, with a service that holds out to `capacity`; `glitches` miss once although they need not. */
  async function kept(
    capacity: number,
    options: { readonly glitches?: number[]; readonly rates?: number[]; readonly interruptAt?: number } = {},
  ): Promise<{ readonly rate: number; readonly met: boolean }[]> {
    const rows: { rate: number; met: boolean }[] = [];
    let attempts = 0;
    await climb({ rates: options.rates ?? [], firstRate: 8 }, async (rate) => {
      attempts += 1;
      if (attempts === options.interruptAt) return undefined;
      const glitch = options.glitches?.indexOf(rate) ?? -1;
      if (glitch !== -1) options.glitches?.splice(glitch, 1);
      const met = rate <= capacity && glitch === -1;
      return { met, keep: () => rows.push({ rate, met }) };
    });
    return rows;
  }

  it('comes within a few percent of the capacity, from below', async () => {
    for (const capacity of [3, 9, 50, 1234]) {
      const best = Math.max(...(await kept(capacity)).filter(({ met }) => met).map(({ rate }) => rate));
      expect(best).toBeLessThanOrEqual(capacity);
      if (capacity > 8) expect(best).toBeGreaterThan(capacity * 0.94);
    }
  });

  it('is not ended by one miss that a repetition does not show', async () => {
    const rows = await kept(50, { glitches: [12] });
    expect(rows.find(({ rate }) => rate === 12)).toEqual({ rate: 12, met: true });
    expect(Math.max(...rows.map(({ rate }) => rate))).toBeGreaterThan(50);
  });

  it('keeps what was measured before an interrupt, and measures given rates in their order', async () => {
    expect(await kept(1000, { interruptAt: 3 })).toHaveLength(2);
    // Also a miss whose repetition did not come to its end.
    expect(await kept(10, { interruptAt: 3 })).toEqual([
      { rate: 8, met: true },
      { rate: 12, met: false },
    ]);
    expect((await kept(50, { rates: [40, 60, 10] })).map(({ rate }) => rate)).toEqual([40, 60, 10]);
  });
});

describe('the verdict', () => {
  const lowest = resources({
    stagesMs: {
      '/search encode': 5,
      '/search encoder_queue': 1,
      '/search encoder_run': 3,
      '/search engine': 2,
      '/search body': 1,
      '/documents commit': 3,
    },
  });
  const atTheEncoder = (encode: number, queue: number) => ({
    '/search encode': encode,
    '/search encoder_queue': queue,
  });
  const input = { lowest, failedShare: 0, cores: 2, sendLagMsP99: 1, targetP99Ms: 100 };
  const failingWith = (stagesMs: Record<string, number>, changes: Partial<StepResources> = {}) =>
    verdict({ ...input, failing: resources({ stagesMs: { ...lowest.stagesMs, ...stagesMs }, ...changes }) });

  it('names nothing when every rate met the target', () => {
    expect(verdict({ ...input, failing: undefined }).resource).toBe('none');
  });

  it.each<[string, Record<string, number>]>([
    ['engine', { ...atTheEncoder(9, 4), '/search engine': 80 }],
    ['encoder', { ...atTheEncoder(90, 80), '/search engine': 3 }],
    ['encoder', { ...atTheEncoder(20, 10), '/score score': 90, '/search engine': 30 }],
    ['disk', { '/documents commit': 60, '/documents append': 40, ...atTheEncoder(50, 40) }],
    [
      'event loop',
      { '/search admission': 20, '/search body': 30, '/search answer': 30, ...atTheEncoder(40, 36) },
    ],
    // An upsert on an H200 at 950 requests a second: the encoder had room, the way to it was long.
    ['event loop', { '/documents encode': 29, '/documents encoder_queue': 10, '/documents encoder_run': 1 }],
  ])('names the %s when its stages grew most', (resource, stagesMs) => {
    expect(failingWith(stagesMs).resource).toBe(resource);
  });

  it('leaves stages within other stages out', () => {
    expect(
      failingWith({ '/search engine': 12, '/search engine_exact': 99, '/search service': 99 }).resource,
    ).toBe('engine');
  });

  it('names the event loop when a thread of the api process is busy, not when the engine is', () => {
    expect(failingWith(atTheEncoder(50, 46), { eventLoopCores: 0.97 }).resource).toBe('event loop');
    expect(failingWith(atTheEncoder(50, 46), { encoderLoopCores: 0.9 })).toMatchObject({
      resource: 'event loop',
      reason: expect.stringContaining("the busiest encoder's was busy 90%") as string,
    });
    const engine = { eventLoopCores: 0.3, engineCores: 1.6, apiCores: 1.95 };
    expect(failingWith({ '/search engine': 50 }, engine)).toMatchObject({
      resource: 'engine',
      reason: expect.stringContaining('1.60 of 2 cores') as string,
    });
  });

  it('names the processor when event loops wait though they are not busy', () => {
    const waiting = { '/search admission': 20, '/search body': 30, ...atTheEncoder(90, 10) };
    expect(failingWith(waiting, { eventLoopCores: 0.3, machineCores: 1.4 }).resource).toBe('event loop');
    expect(failingWith(waiting, { eventLoopCores: 0.3, machineCores: 1.9 })).toMatchObject({
      resource: 'processor',
      reason: expect.stringContaining('1.90 of 2 cores') as string,
    });
  });

  it('names the load generator when it was late itself, not when the service took the cores', () => {
    const late = { ...input, sendLagMsP99: 60 };
    expect(verdict({ ...late, failing: resources() }).resource).toBe('load generator');
    expect(
      verdict({ ...late, failing: resources({ busiestSenderCores: 0.95, machineCores: 2 }) }).resource,
    ).toBe('load generator');
    const stagesMs = { ...lowest.stagesMs, ...atTheEncoder(90, 86) };
    const busy = resources({ stagesMs, encoderCores: 1.7, machineCores: 2 });
    expect(verdict({ ...late, failing: busy }).resource).toBe('encoder');
  });

  it('goes by the stages themselves when not even the lowest rate met the target', () => {
    const failing = resources({ stagesMs: { ...atTheEncoder(300, 290), '/search engine': 8 } });
    expect(verdict({ ...input, lowest: undefined, failing }).resource).toBe('encoder');
  });

  it('does not guess when no stage grew', () => {
    expect(verdict({ ...input, failedShare: 0.05, failing: lowest })).toMatchObject({
      resource: 'unknown',
      reason: expect.stringContaining('5.0% of the requests failed') as string,
    });
  });
});

describe('a report', () => {
  it('takes the highest rate below the first miss for the capacity', () => {
    const rows = [
      step({ rate_per_second: 20, met_target: false }),
      step({ rate_per_second: 30 }),
      step({ rate_per_second: 10 }),
    ];
    expect(reportWith(rows)).toMatchObject({ capacity_per_second: 10 });
    expect(reportWith(rows).rows.map((row) => row.rate_per_second)).toEqual([10, 20, 30]);
    expect(reportWith([step({ met_target: false })]).capacity_per_second).toBeNull();
  });

  it('is one also when nothing was measured', () => {
    const empty = reportWith([], true);
    expect(empty).toMatchObject({ capacity_per_second: null, verdict: { resource: 'unknown' } });
  });
});

describe('GPU use', () => {
  it('is read from what nvidia-smi tells, and from nothing else', () => {
    expect(parseGpuLine('1, 37, 1024')).toEqual({ index: '1', utilisation: 0.37, memoryBytes: 2 ** 30 });
    expect(parseGpuLine('0, [N/A], 5')).toBeUndefined();
  });
});
