/**
 * The one importer of prom-client: the registry behind `/metrics`. Other layers pass plain functions and get plain functions
 * back. Labels are bounded sets (route patterns, stages, codes, the busiest tenants), never documents or texts.
 */
import { AggregatorRegistry, Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

const metricPrefix = 'maxsimd_';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export interface MetricDescription {
  /** Without the prefix; ends with the unit (`encoder_queue_tokens`, `store_disk_bytes`). */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

/** Read at each scrape: one number, or one for each label set. */
export type Reading = () => number | readonly Sample[] | Promise<number | readonly Sample[]>;

export interface HistogramSample {
  readonly labels: Labels;
  /** Upper bounds in the metric's unit, increasing. */
  readonly bounds: readonly number[];
  /** Observations between each bound and the one before, then those above all bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

export type HistogramReading = () => Promise<readonly HistogramSample[]>;

export interface RegisteredMetric extends MetricDescription {
  readonly type: 'gauge' | 'counter' | 'histogram';
}

export interface Metrics {
  /** A value that goes up and down, read at each scrape. */
  registerGauge(description: MetricDescription, read: Reading): void;
  /** A total that only grows and is kept elsewhere, read at each scrape. */
  registerCounter(description: MetricDescription, read: Reading): void;
  /** Counts per bucket that are kept elsewhere, read at each scrape. */
  registerHistogram(description: MetricDescription, read: HistogramReading): void;
  counter(description: MetricDescription): (labels: Labels, increment?: number) => void;
  histogram(
    description: MetricDescription & { readonly buckets: readonly number[] },
  ): (labels: Labels, value: number) => void;
  /** All registered metrics by name, without those of the process. */
  descriptions(): readonly RegisteredMetric[];
  readonly contentType: string;
  render(): Promise<string>;
  /** The values now, as plain data for `include` in another thread. */
  snapshot(): Promise<MetricsSnapshot>;
  /** From now on `render` adds the values of other threads to these. */
  include(others: () => Promise<readonly MetricsSnapshot[]>): void;
}

export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** Seconds; dense between 0.1 ms and 1 s, the times of engine and encoder. */
export const latencyBucketsSeconds: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
  120,
];

const loopPrefix = `${metricPrefix}nodejs_eventloop_lag_`;
/** Gauges of prom-client with the ending of counters, which linters refuse. Each is the sum of another gauge. */
const misnamedSums = /_nodejs_active_(handles|requests|resources)_total$/;

/** A fresh registry. That of a process has process metrics (`maxsimd_process_*`, `maxsimd_nodejs_*`), a thread's its event loop. */
export function createMetrics(of: 'process' | 'thread' = 'process'): Metrics {
  const registry = registryOf(of);
  let others: (() => Promise<readonly MetricsSnapshot[]>) | undefined;

  const registered: RegisteredMetric[] = [];
  const shared = (type: RegisteredMetric['type'], description: MetricDescription) => {
    registered.push({ ...description, name: `${metricPrefix}${description.name}`, type });
    return settings(description);
  };
  const settings = (description: MetricDescription) => ({
    name: `${metricPrefix}${description.name}`,
    help: description.help,
    labelNames: [...(description.labelNames ?? [])],
    registers: [registry],
  });

  const registerHistogram = (description: MetricDescription, read: HistogramReading): void => {
    const { name, help } = shared('histogram', description);
    const metric = {
      name,
      get: async () => ({
        name,
        help,
        type: 'histogram',
        aggregator: 'sum',
        values: (await read()).flatMap((sample) => histogramLines(name, sample)),
      }),
    };
    // prom-client uses no more of a metric than this. Its own histograms cannot be set from outside.
    registry.registerMetric(metric as unknown as Histogram);
  };

  return {
    registerGauge(description, read) {
      const gauge: Gauge = new Gauge({
        ...shared('gauge', description),
        async collect() {
          const samples = await readSamples(read);
          // Label sets that are no longer reported must disappear.
          gauge.reset();
          for (const sample of samples) gauge.set({ ...sample.labels }, sample.value);
        },
      });
    },
    registerCounter(description, read) {
      const counter: Counter = new Counter({
        ...shared('counter', description),
        async collect() {
          const samples = await readSamples(read);
          counter.reset();
          for (const sample of samples) counter.inc({ ...sample.labels }, sample.value);
        },
      });
    },
    counter(description) {
      const counter = new Counter(shared('counter', description));
      return (labels, increment = 1) => counter.inc({ ...labels }, increment);
    },
    histogram({ buckets, ...description }) {
      const observations = new Observations(description.labelNames ?? [], buckets);
      registerHistogram(description, async () => observations.series());
      return (labels, value) => observations.add(labels, value);
    },
    registerHistogram,
    descriptions: () => registered.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    contentType: registry.contentType,
    async render() {
      if (others === undefined) return registry.metrics();
      // The other threads come first, because they send some of their counts to this one.
      return joined([...(await others()), await registry.getMetricsAsJSON()]);
    },
    snapshot: () => registry.getMetricsAsJSON(),
    include: (given) => void (others = given),
  };
}

function registryOf(of: 'process' | 'thread'): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: metricPrefix });
  for (const { name } of registry.getMetricsAsArray()) {
    const isWanted = of === 'thread' ? name.startsWith(loopPrefix) : !misnamedSums.test(name);
    if (!isWanted) registry.removeSingleMetric(name);
  }
  return registry;
}

/** The metrics of all threads. The latest event loop counts. By default some metrics of the process would be left out. */
function joined(threads: readonly MetricsSnapshot[]): Promise<string> {
  const aggregatorOf = (name: string) => (name.startsWith(loopPrefix) ? 'max' : 'sum');
  const all = threads.map((one) =>
    one.map((metric) => ({ ...metric, aggregator: aggregatorOf(metric.name) })),
  );
  return AggregatorRegistry.aggregate(all).metrics();
}

type Series = HistogramSample & { readonly counts: number[]; sum: number };

/**
 * The observations of a histogram. A request makes some twenty of them, and those of prom-client sort, check and copy the labels
 * each time.
 */
class Observations {
  /** By the values of the labels. */
  readonly #series = new Map<string, Series>();
  readonly #labelNames: readonly string[];
  readonly #bounds: readonly number[];

  constructor(labelNames: readonly string[], bounds: readonly number[]) {
    this.#labelNames = labelNames;
    this.#bounds = bounds;
    if (labelNames.length === 0) this.#find({});
  }

  series(): readonly HistogramSample[] {
    return [...this.#series.values()];
  }

  add(labels: Labels, value: number): void {
    const series = this.#find(labels);
    let place = 0;
    while (value > this.#bounds[place]!) place += 1;
    series.counts[place]! += 1;
    series.sum += value;
  }

  #find(labels: Labels): Series {
    let key = '';
    for (const name of this.#labelNames) key += `${labels[name]}\n`;
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    const counts = this.#bounds.map(() => 0).concat(0);
    const series: Series = { labels: { ...labels }, bounds: this.#bounds, counts, sum: 0 };
    this.#series.set(key, series);
    return series;
  }
}

/** Prometheus buckets are cumulative. */
function histogramLines(
  name: string,
  { labels, bounds, counts, sum }: HistogramSample,
): { metricName: string; labels: Labels; value: number }[] {
  let total = 0;
  const buckets = counts.map((count, i) => {
    total += count;
    const le = bounds[i] === undefined ? '+Inf' : String(bounds[i]);
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

async function readSamples(read: Reading): Promise<readonly Sample[]> {
  const reading = await read();
  return typeof reading === 'number' ? [{ labels: {}, value: reading }] : reading;
}
