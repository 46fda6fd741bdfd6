/** The alerts, and the steps to take for each. The Prometheus rules and the runbook of the guide are made of them. */

export interface Alert {
  readonly name: string;
  /** `page`: somebody must look now; `ticket`: on the next working day. */
  readonly severity: 'page' | 'ticket';
  readonly expression: string;
  /** How long it must hold, as Prometheus writes it. */
  readonly holds: string;
  readonly summary: string;
  /** A line of the runbook; links are those of docs/guide. */
  readonly action: string;
}

const searchRoute = '/v1/indexes/:index_id/search';

export const alerts: readonly Alert[] = [
  {
    name: 'MaxsimdDown',
    severity: 'page',
    expression: 'up{job="maxsimd"} == 0',
    holds: '2m',
    summary: 'A process of the job `maxsimd` cannot be scraped.',
    action:
      'Look at its log. The last line of a refused start names the reason. After `kill -9` or a crash, start it again: everything that was answered is stored.',
  },
  {
    name: 'MaxsimdNoEncoder',
    severity: 'page',
    expression: 'maxsimd_encoder_ready == 0',
    holds: '1m',
    summary: 'No encoder is ready. Searches and upserts get 503.',
    action:
      'Look for `ejected` in the log. Local encoders restart by themselves; one that ends at once lacks memory or its model. If encoders run elsewhere, look at their process and the network.',
  },
  {
    name: 'MaxsimdErrors',
    severity: 'page',
    expression:
      'sum by (instance) (rate(maxsimd_http_requests_total{status=~"5..",route!="/readyz"}[5m])) / sum by (instance) (rate(maxsimd_http_requests_total{route!="/readyz"}[5m])) > 0.05',
    holds: '5m',
    summary: 'More than 5% of all requests fail.',
    action:
      '`/readyz` names the part that fails. The log has the reason (`unavailable`, `unexpected failure`). If the disk is full, [make room](#when-the-disk-is-full). If an index is damaged, run `maxsimd index verify`.',
  },
  {
    name: 'MaxsimdSearchSlow',
    severity: 'ticket',
    expression: `histogram_quantile(0.99, sum by (instance, le) (rate(maxsimd_http_request_duration_seconds_bucket{route="${searchRoute}"}[10m]))) > 1`,
    holds: '15m',
    summary: 'One search in a hundred takes longer than a second.',
    action:
      'The dashboard shows the slow stage. `encoder_queue` needs more encoders, `engine_queue` more cores, `engine_exact` a smaller [`candidate_k`](recall.md), and `index` or `admission` a faster catalog.',
  },
  {
    name: 'MaxsimdRecallLow',
    severity: 'ticket',
    expression:
      'maxsimd_index_recall_at_10{bound="high"} < on (instance) group_left () maxsimd_recall_target',
    holds: '1h',
    summary: 'Searches of an index miss more than they should. `index` names it.',
    action:
      'The service has broadened the searches of this index as far as it goes. Ask for a larger [`candidate_k`](recall.md#how-recall-is-kept), or `exact`.',
  },
  {
    name: 'MaxsimdEngineDeviceFailed',
    severity: 'ticket',
    expression: 'maxsimd_engine_device_failed == 1',
    holds: '1m',
    summary: 'The GPU of the engine failed. Searches go on without it, more slowly.',
    action:
      'The log says what failed (`the GPU of the engine failed`). `nvidia-smi` and the kernel’s log (`Xid`) show whether the GPU is there. The engine tries it again every minute. If the error stays, restart the service.',
  },
  {
    name: 'MaxsimdEventLoopBusy',
    severity: 'ticket',
    expression: 'maxsimd_nodejs_eventloop_lag_p99_seconds > 0.05',
    holds: '15m',
    summary: 'An event loop of the API process is more than 50 ms late.',
    action:
      'One core is not enough for the busiest of its threads. Set `MAXSIMD_API_THREADS` higher, or spread the load over [several nodes](nodes.md).',
  },
  {
    name: 'MaxsimdEncodersFull',
    severity: 'ticket',
    expression: 'sum by (instance) (rate(maxsimd_encoder_dropped_total{reason="rejected"}[10m])) > 0.1',
    holds: '15m',
    summary: 'Encoders refuse work because their queues are full.',
    action:
      'There are too few encoders for these upserts. Add encoders or a [GPU](gpu.md) ([size a host](sizing.md)), or slow the import down.',
  },
  {
    name: 'MaxsimdEncodersRestart',
    severity: 'ticket',
    expression: 'sum by (instance) (increase(maxsimd_encoder_events_total{event="ejected"}[30m])) > 3',
    holds: '0m',
    summary: 'Encoders failed more than three times in half an hour.',
    action:
      'The log says why. If they lack memory, raise `MAXSIMD_ENCODER_MEMORY_MIB` or lower `MAXSIMD_MODELS_LOADED`. A text that ends encoders is refused when it is sent again (`unencodable_…`).',
  },
  {
    name: 'MaxsimdDamage',
    severity: 'page',
    expression: 'increase(maxsimd_store_records_verified_total{verdict="damaged"}[1h]) > 0',
    holds: '0m',
    summary: 'A record does not match its checksum.',
    action:
      'The disk loses data. Run `maxsimd index verify`, which names all damage. Then [restore](#back-up-and-restore) or import the index again, and replace the disk.',
  },
  {
    name: 'MaxsimdUsageWaits',
    severity: 'page',
    expression: 'maxsimd_usage_waiting_tenants > 0',
    holds: '5m',
    summary: 'Usage cannot be written and waits in memory.',
    action:
      'The data directory cannot be written. [Make room](#when-the-disk-is-full). If the process dies before, that usage is lost.',
  },
  {
    name: 'MaxsimdMemoryFull',
    severity: 'ticket',
    expression:
      'maxsimd_engine_memory_bytes{kind="taken"} / ignoring(kind) maxsimd_engine_memory_bytes{kind="bound"} > 0.9',
    holds: '15m',
    summary: 'Data that must be in memory takes nine tenths of the engine’s bound.',
    action:
      'Indexes that do not fit will get 503. Raise `MAXSIMD_MEMORY_MIB`, or move indexes to another host ([size a host](sizing.md)).',
  },
  {
    name: 'MaxsimdDescriptorsFull',
    severity: 'ticket',
    expression: 'maxsimd_process_open_fds / maxsimd_process_max_fds > 0.8',
    holds: '15m',
    summary: 'Four fifths of the descriptors are in use.',
    action: 'Raise `ulimit -n` ([descriptors](#descriptors-and-connections)).',
  },
  {
    name: 'MaxsimdConnectionsRefused',
    severity: 'ticket',
    expression: 'increase(maxsimd_http_connections_refused_total[10m]) > 0',
    holds: '10m',
    summary: 'The service closes new connections because it has as many as it may have.',
    action:
      'Find the client that opens too many. If all are needed, add a node, or a balancer that shares connections.',
  },
  {
    name: 'MaxsimdSharedServiceFails',
    severity: 'page',
    expression: 'sum by (instance, service) (rate(maxsimd_cluster_call_failures_total[5m])) > 0.1',
    holds: '5m',
    summary: 'PostgreSQL, the object store or Redis does not answer a node. `service` names it.',
    action:
      'Look at that service. The log of the node has the `reason`. No answered write is lost, and the node goes on when the service is back.',
  },
  {
    name: 'MaxsimdLimiterAway',
    severity: 'ticket',
    expression: 'maxsimd_cluster_limiter_fallback == 1',
    holds: '5m',
    summary: 'Redis is away. Each node admits only its share of a tenant’s rate.',
    action: 'Bring Redis back. Until then a tenant that reaches only some nodes is refused below its limit.',
  },
  {
    name: 'MaxsimdNodesLost',
    severity: 'ticket',
    expression: 'max(maxsimd_cluster_nodes) < max(max_over_time(maxsimd_cluster_nodes[1h]))',
    holds: '10m',
    summary: 'There are fewer nodes than in the last hour.',
    action:
      '`maxsimd cluster status` names the lost nodes. The others serve everything meanwhile, with less capacity.',
  },
  {
    name: 'MaxsimdCatalogSlow',
    severity: 'ticket',
    expression:
      'histogram_quantile(0.5, sum by (instance, le) (rate(maxsimd_cluster_call_seconds_bucket{service="catalog",operation="read-heads"}[10m]))) > 0.01',
    holds: '15m',
    summary: 'The statement that every search sends to PostgreSQL takes longer than 10 ms.',
    action:
      'On a good network its median is below 2 ms. Look at the load of PostgreSQL, its connections, and the network.',
  },
  {
    name: 'MaxsimdCatchUpSlow',
    severity: 'ticket',
    expression:
      'histogram_quantile(0.99, sum by (instance, le) (rate(maxsimd_cluster_catch_up_seconds_bucket{kind="follows"}[10m]))) > 5',
    holds: '15m',
    summary: 'Open indexes take longer than 5 s to catch up with what other nodes wrote.',
    action:
      'Searches that wait for it get 503 at their deadline. Look at the object store, and let the balancer send each index to one node.',
  },
  {
    name: 'MaxsimdCacheSmall',
    severity: 'ticket',
    expression:
      'sum by (instance) (rate(maxsimd_cluster_cache_evictions_total[30m])) > 0 and sum by (instance) (rate(maxsimd_cluster_cache_lookups_total{outcome="miss"}[30m])) / sum by (instance) (rate(maxsimd_cluster_cache_lookups_total[30m])) > 0.1',
    holds: '30m',
    summary: 'The cache is too small: one lookup in ten misses.',
    action: 'Raise `MAXSIMD_CACHE_MIB`, or let the balancer send each index to one node.',
  },
  {
    name: 'MaxsimdMergeLeasesLost',
    severity: 'ticket',
    expression: 'increase(maxsimd_cluster_merge_leases_total{event="lost"}[1h]) > 0',
    holds: '0m',
    summary: 'A node stood still for half a minute and lost its turn to merge.',
    action:
      'Nothing is lost, because another node merges. Look for a host that swaps, was stopped, or lacks processor time.',
  },
];
