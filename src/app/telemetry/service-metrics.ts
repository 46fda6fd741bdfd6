/** Metrics of the store, the engine and the encoders. They are read at each scrape. */
import type { NativeEngine, SegmentInfo } from '../../index/engine/native.ts';
import { registerEncoderMetrics } from './encoder-metrics.ts';
import type { Metrics, Sample } from '../../observation/metrics.ts';
import type { RunningService } from '../../service/create-service.ts';
import type { Backend } from '../backend.ts';
import type { Encoders } from '../encoders.ts';

interface Observed {
  readonly service: Pick<RunningService, 'statistics'>;
  readonly backend: Pick<Backend, 'usageWaiting'>;
  readonly engine: NativeEngine;
  readonly encoders: Pick<Encoders, 'pool' | 'events' | 'statistics'>;
}

export function countTraceSpans(
  metrics: Metrics,
): (labels: { readonly outcome: 'sent' | 'dropped' }, spans: number) => void {
  return metrics.counter({
    name: 'trace_spans_total',
    help: 'Spans that were sent to the collector (`sent`), or dropped because it was away or too many waited (`dropped`).',
    labelNames: ['outcome'],
  });
}

export function registerServiceMetrics(metrics: Metrics, observed: Observed): void {
  const { service, backend, engine, encoders } = observed;
  registerEncoderMetrics(metrics, encoders);
  metrics.registerGauge(
    { name: 'requests_admitted', help: 'Requests that hold a concurrency slot.' },
    () => service.statistics().requestsInFlight,
  );
  metrics.registerGauge(
    {
      name: 'usage_waiting_tenants',
      help: 'Tenants whose usage waits in memory because the ledger cannot be written. It is lost if the process dies.',
    },
    () => backend.usageWaiting(),
  );
  registerStoreMetrics(metrics, service);
  registerRecallMetrics(metrics, service);
  registerEngineMetrics(metrics, observed);
  registerDeviceMetrics(metrics, engine);
  metrics.registerGauge({ name: 'encoder_ready', help: '1 while an encoder is ready.' }, () =>
    Number(encoders.pool.ready()),
  );
  metrics.registerCounter(
    {
      name: 'encoder_events_total',
      help: 'Encoders that were admitted, ejected or removed, failed lookups of names, corrupt replies, and documents and queries that ended encoders.',
      labelNames: ['event'],
    },
    () => [...encoders.events].map(([event, value]) => ({ labels: { event }, value })),
  );
}

function registerStoreMetrics(metrics: Metrics, service: Observed['service']): void {
  const gauge = (name: string, help: string, read: () => number): void =>
    metrics.registerGauge({ name, help }, read);
  const sum = (name: string, help: string, pick: (segment: SegmentInfo) => number): void =>
    gauge(name, help, () =>
      service.statistics().segments.reduce((total, segment) => total + pick(segment), 0),
    );
  gauge('store_open_indexes', 'Open indexes.', () => service.statistics().openIndexes);
  gauge('store_records_live', 'Live documents of open indexes.', () => service.statistics().recordsLive);
  sum(
    'store_records',
    'Records of open indexes, including those of deleted documents.',
    ({ records }) => records,
  );
  sum('store_chunks', 'Chunks of open indexes, including deleted ones.', ({ chunks }) => chunks);
  sum('store_token_vectors', 'Token vectors of open indexes.', ({ tokenVectors }) => tokenVectors);
  sum('store_disk_bytes', 'Bytes of the segment files of open indexes.', ({ fileBytes }) => fileBytes);
  sum(
    'store_derived_bytes',
    'Bytes of derived files: codes, centroids and postings.',
    ({ derivedBytes }) => derivedBytes,
  );
  metrics.registerGauge(
    { name: 'store_segments', help: 'Segments of open indexes.', labelNames: ['state'] },
    () => {
      const { segments } = service.statistics();
      const active = segments.filter(({ state }) => state === 'active').length;
      return samples('state', { active, sealed: segments.length - active });
    },
  );
  metrics.registerCounter(
    {
      name: 'store_records_verified_total',
      help: 'Records that were compared with their checksums in the background, by the result.',
      labelNames: ['verdict'],
    },
    () => {
      const { recordsVerified, recordsDamaged } = service.statistics();
      return samples('verdict', { intact: recordsVerified - recordsDamaged, damaged: recordsDamaged });
    },
  );
}

/** So many indexes have labels. */
const recallsMax = 100;

function registerRecallMetrics(metrics: Metrics, service: Observed['service']): void {
  metrics.registerGauge(
    {
      name: 'index_recall_at_10',
      help: `Share of the exact best ten that searches at the default candidate_k find, measured on a sample of searches: the \`mean\`, and the \`low\` and \`high\` end of its 95% interval. Of the ${recallsMax} measured indexes with the lowest.`,
      labelNames: ['index', 'bound'],
    },
    () =>
      service
        .statistics()
        .recalls.toSorted((a, b) => a.at10.mean - b.at10.mean)
        .slice(0, recallsMax)
        .flatMap(({ indexId, at10 }) =>
          Object.entries(at10).map(([bound, value]) => ({ labels: { index: indexId, bound }, value })),
        ),
  );
  metrics.registerGauge(
    { name: 'recall_target', help: 'The recall that indexes keep: MAXSIMD_RECALL_TARGET.' },
    () => service.statistics().recallTarget,
  );
}

function registerEngineMetrics(metrics: Metrics, { service, engine }: Observed): void {
  metrics.registerCounter(
    {
      name: 'engine_searches_total',
      help: 'Searches, by the way their candidates were chosen.',
      labelNames: ['plan'],
    },
    () => samples('plan', service.statistics().plans),
  );
  metrics.registerCounter(
    {
      name: 'search_repeats_total',
      help: 'Times that a search, or another read of an index, ran again: a merge `moved` records while it ran, `values` of metadata or `parts` of a segment had to be loaded first, an idle index was closed to make room in `memory`, or a document of its answer had `expired`.',
      labelNames: ['reason'],
    },
    () => samples('reason', { ...service.statistics().repeats }),
  );
  metrics.registerGauge(
    { name: 'engine_info', help: 'The kernel in use (value 1).', labelNames: ['kernel'] },
    () => samples('kernel', { [engine.info.kernel]: 1 }),
  );
  metrics.registerGauge(
    {
      name: 'engine_memory_bytes',
      help: 'Memory of the engine: the `bound`, the part `taken` by directories, codebooks, graphs, columns and builds, the `codes` of open indexes, and the part of them `held` in memory.',
      labelNames: ['kind'],
    },
    () => {
      const { mostBytes, takenBytes, codesBytes, heldBytes } = engine.memory();
      return samples('kind', { bound: mostBytes, taken: takenBytes, codes: codesBytes, held: heldBytes });
    },
  );
  metrics.registerGauge(
    { name: 'engine_threads', help: 'Threads of the search engine.' },
    () => engine.info.threads,
  );
}

/** Metrics without a value where the engine has no GPU. */
function registerDeviceMetrics(metrics: Metrics, engine: NativeEngine): void {
  metrics.registerGauge(
    {
      name: 'engine_device_bytes',
      help: 'Memory of the engine’s GPU: the `bound`, and the part `taken` by token matrices.',
      labelNames: ['kind'],
    },
    () => {
      const device = engine.device();
      return device === undefined ? [] : samples('kind', { bound: device.mostBytes, taken: device.bytes });
    },
  );
  metrics.registerCounter(
    {
      name: 'engine_device_segments_scored_total',
      help: 'Segments that were scored on the engine’s GPU.',
    },
    () => engine.device()?.scored ?? [],
  );
  metrics.registerGauge(
    {
      name: 'engine_device_failed',
      help: '1 if the last search on the engine’s GPU failed. The engine tries it again every minute.',
    },
    () => {
      const device = engine.device();
      return device === undefined ? [] : Number(device.failure !== '');
    },
  );
}

function samples(label: string, values: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
}
