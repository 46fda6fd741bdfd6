/**
 * The one importer of prom-client: the registry behind `/metrics`. Other layers hand in plain functions
 * and get plain functions back. Labels are bounded sets chosen by the program (route patterns, stages,
 * codes); never tenants, documents or text.
 */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

export const metricPrefix = 'maxsimd_';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export interface MetricDescription {
  /** Without the prefix; unit last (`encoder_queue_tokens`, `store_disk_bytes`). */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

/** Read at scrape time: one number, or one per label set. */
export type Reading = () => number | readonly Sample[] | Promise<number | readonly Sample[]>;

export interface Metrics {
  /** A value that goes up and down, read at scrape time. */
  registerGauge(description: MetricDescription, read: Reading): void;
  /** A total kept elsewhere that only grows, read at scrape time. */
  registerCounter(description: MetricDescription, read: Reading): void;
  counter(description: MetricDescription): (labels: Labels, increment?: number) => void;
  /** `buckets` are upper bounds in the metric's unit, increasing. */
  histogram(
    description: MetricDescription & { readonly buckets: readonly number[] },
  ): (labels: Labels, value: number) => void;
  readonly contentType: string;
  /** The Prometheus text exposition of everything registered. */
  render(): Promise<string>;
}

/** Seconds; dense where the engine and the encoder live (0.1 ms to 1 s). */
export const latencyBucketsSeconds: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
  120,
];

/** A fresh registry with process and event-loop metrics (`maxsimd_process_*`, `maxsimd_nodejs_*`). */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: metricPrefix });

  const shared = (description: MetricDescription) => ({
    name: `${metricPrefix}${description.name}`,
    help: description.help,
    labelNames: [...(description.labelNames ?? [])],
    registers: [registry],
  });

  return {
    registerGauge(description, read) {
      const gauge: Gauge = new Gauge({
        ...shared(description),
        async collect() {
          const samples = await readSamples(read);
          // Label sets that are no longer reported must disappear, not freeze.
          gauge.reset();
          for (const sample of samples) gauge.set({ ...sample.labels }, sample.value);
        },
      });
    },
    registerCounter(description, read) {
      const counter: Counter = new Counter({
        ...shared(description),
        async collect() {
          const samples = await readSamples(read);
          counter.reset();
          for (const sample of samples) counter.inc({ ...sample.labels }, sample.value);
        },
      });
    },
    counter(description) {
      const counter = new Counter(shared(description));
      return (labels, increment = 1) => counter.inc({ ...labels }, increment);
    },
    histogram(description) {
      const histogram = new Histogram({ ...shared(description), buckets: [...description.buckets] });
      return (labels, value) => histogram.observe({ ...labels }, value);
    },
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}

async function readSamples(read: Reading): Promise<readonly Sample[]> {
  const reading = await read();
  return typeof reading === 'number' ? [{ labels: {}, value: reading }] : reading;
}
