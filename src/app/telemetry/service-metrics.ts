/** What the metrics listener tells of store, engine and encoders: read when it is scraped. */
import type { NativeEngine, SegmentInfo } from '../../index/engine/native.ts';
import { registerEncoderMetrics } from './encoder-metrics.ts';
import type { Metrics } from '../../metrics.ts';
import type { RunningService } from '../../service/create-service.ts';
import type { Backend } from '../backend.ts';
import type { Encoders } from '../encoders.ts';

/** Without traces nothing is counted. */
export function countTraceSpans(
  metrics: Metrics,
): (labels: { readonly outcome: 'sent' | 'dropped' }, spans: number) => void {
  return metrics.counter({
    name: 'trace_spans_total',
    help: 'Spans that were sent to the collector (`sent`), or dropped because it was away or too many waited (`dropped`).',
    labelNames: ['outcome'],
  });
}

export function registerServiceMetrics(
  metrics: Metrics,
  {
    service,
    backend,
    engine,
    encoders,
  }: {
    readonly service: Pick<RunningService, 'statistics'>;
    readonly backend: Pick<Backend, 'usageWaiting'>;
    readonly engine: NativeEngine;
    readonly encoders: Pick<Encoders, 'pool' | 'events' | 'statistics'>;
  },
): void {
  registerEncoderMetrics(metrics, encoders);
  const sum = (pick: (segment: SegmentInfo) => number) => () =>
    service.statistics().segments.reduce((total, segment) => total + pick(segment), 0);
  const gauge = (name: string, help: string, read: () => number): void =>
    metrics.registerGauge({ name, help }, read);

  gauge(
    'requests_admitted',
    'Requests that hold a concurrency slot.',
    () => service.statistics().requestsInFlight,
  );
  gauge(
    'usage_waiting_tenants',
    'Tenants whose usage waits in memory because the ledger cannot be written. It is lost if the process dies.',
    () => backend.usageWaiting(),
  );
  gauge('store_open_indexes', 'Open indexes.', () => service.statistics().openIndexes);
  gauge('store_records_live', 'Live documents of open indexes.', () => service.statistics().recordsLive);
  gauge(
    'store_records',
    'Records of open indexes, including those of deleted documents.',
    sum((segment) => segment.records),
  );
  gauge(
    'store_chunks',
    'Chunks of open indexes, including deleted ones.',
    sum((segment) => segment.chunks),
  );
  gauge(
    'store_token_vectors',
    'Token vectors of open indexes.',
    sum((segment) => segment.tokenVectors),
  );
  gauge(
    'store_disk_bytes',
    'Bytes of the segment files of open indexes.',
    sum((segment) => segment.fileBytes),
  );
  gauge(
    'store_derived_bytes',
    'Bytes of derived files: codes, centroids and postings.',
    sum((segment) => segment.derivedBytes),
  );
  metrics.registerGauge(
    { name: 'store_segments', help: 'Segments of open indexes.', labelNames: ['state'] },
    () => {
      const { segments } = service.statistics();
      return (['active', 'sealed'] as const).map((state) => ({
        labels: { state },
        value: segments.filter((segment) => segment.state === state).length,
      }));
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
      return [
        { labels: { verdict: 'intact' }, value: recordsVerified - recordsDamaged },
        { labels: { verdict: 'damaged' }, value: recordsDamaged },
      ];
    },
  );
  metrics.registerCounter(
    {
      name: 'engine_searches_total',
      help: 'Searches, by the way their candidates were chosen.',
      labelNames: ['plan'],
    },
    () => Object.entries(service.statistics().plans).map(([plan, value]) => ({ labels: { plan }, value })),
  );
  metrics.registerGauge(
    { name: 'engine_info', help: 'The kernel in use (value 1).', labelNames: ['kernel'] },
    () => [{ labels: { kernel: engine.info.kernel }, value: 1 }],
  );
  metrics.registerGauge(
    {
      name: 'engine_memory_bytes',
      help: 'Memory of the engine: the `bound`, the part `taken` by directories, codebooks and builds, the `codes` of open indexes, and the part of them `held` in memory.',
      labelNames: ['kind'],
    },
    () => {
      const { mostBytes, takenBytes, codesBytes, heldBytes } = engine.memory();
      const kinds = { bound: mostBytes, taken: takenBytes, codes: codesBytes, held: heldBytes };
      return Object.entries(kinds).map(([kind, value]) => ({ labels: { kind }, value }));
    },
  );
  metrics.registerGauge(
    {
      name: 'engine_device_bytes',
      help: 'Memory of the engine’s GPU: the `bound`, and the part `taken` by token matrices.',
      labelNames: ['kind'],
    },
    () => {
      const device = engine.device();
      if (device === undefined) return [];
      const kinds = { bound: device.mostBytes, taken: device.bytes };
      return Object.entries(kinds).map(([kind, value]) => ({ labels: { kind }, value }));
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
  gauge('engine_threads', 'Threads of the search engine.', () => engine.info.threads);
  gauge('encoder_ready', '1 while an encoder is ready.', () => Number(encoders.pool.ready()));
  metrics.registerCounter(
    {
      name: 'encoder_events_total',
      help: 'Encoders that were admitted or ejected, corrupt replies, and documents and queries that ended encoders.',
      labelNames: ['event'],
    },
    () => [...encoders.events].map(([event, value]) => ({ labels: { event }, value })),
  );
}
