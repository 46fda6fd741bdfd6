/** What an operator is woken for, and what to do then: the Prometheus rules and the runbook of the guide are made of it. */

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
      'Look at its log. A start that is refused names the reason in its last line; after `kill -9` or a crash, start it again: what was answered is stored.',
  },
  {
    name: 'MaxsimdNoEncoder',
    severity: 'page',
    expression: 'maxsimd_encoder_ready == 0',
    holds: '1m',
    summary: 'No encoder serves: searches and upserts get 503.',
    action:
      'The log says `encoder` with `ejected` and why. Local encoders are started again by themselves: one that ends at once lacks memory or its model. Of encoders elsewhere, look at their process and the network.',
  },
  {
    name: 'MaxsimdErrors',
    severity: 'page',
    expression:
      'sum by (instance) (rate(maxsimd_http_requests_total{status=~"5..",route!="/readyz"}[5m])) / sum by (instance) (rate(maxsimd_http_requests_total{route!="/readyz"}[5m])) > 0.05',
    holds: '5m',
    summary: 'More than 5% of the requests fail.',
    action:
      '`/readyz` names the part that fails, the log the reason (`unavailable`, `unexpected failure`). A full disk: [make room](#when-the-disk-is-full). A damaged index: `maxsimd index verify`.',
  },
  {
    name: 'MaxsimdSearchSlow',
    severity: 'ticket',
    expression: `histogram_quantile(0.99, sum by (instance, le) (rate(maxsimd_http_request_duration_seconds_bucket{route="${searchRoute}"}[10m]))) > 1`,
    holds: '15m',
    summary: 'One search in a hundred takes longer than a second.',
    action:
      'The stages of the dashboard say where: `encoder_queue` wants more encoders, `engine_queue` more cores, `engine_exact` a smaller `candidate_k` ([recall](recall.md)), `index` and `admission` a faster catalog.',
  },
  {
    name: 'MaxsimdEngineDeviceFailed',
    severity: 'ticket',
    expression: 'maxsimd_engine_device_failed == 1',
    holds: '1m',
    summary: 'The GPU of the engine failed: searches go on without it, slower.',
    action:
      'The log says what failed (`the GPU of the engine failed`), `nvidia-smi` and the kernel’s log (`Xid`) whether the GPU is there. It is tried again every minute; an error that stays wants a restart.',
  },
  {
    name: 'MaxsimdEventLoopBusy',
    severity: 'ticket',
    expression: 'maxsimd_nodejs_eventloop_lag_p99_seconds > 0.05',
    holds: '15m',
    summary: 'The event loop of the API is late by more than 50 ms.',
    action:
      'The process has more to do than one core can: spread the load over several nodes ([several nodes](nodes.md)).',
  },
  {
    name: 'MaxsimdEncodersFull',
    severity: 'ticket',
    expression: 'sum by (instance) (rate(maxsimd_encoder_dropped_total{reason="rejected"}[10m])) > 0.1',
    holds: '15m',
    summary: 'Encoders refuse work because their queues are full.',
    action:
      'They are too few for the upserts that come: add encoders or a GPU ([sizing](sizing.md), [gpu](gpu.md)), or slow the import.',
  },
  {
    name: 'MaxsimdEncodersRestart',
    severity: 'ticket',
    expression: 'sum by (instance) (increase(maxsimd_encoder_events_total{event="ejected"}[30m])) > 3',
    holds: '0m',
    summary: 'Encoders went out of use more than three times in half an hour.',
    action:
      'The log says why. Memory: raise `MAXSIMD_ENCODER_MEMORY_MIB` or lower `MAXSIMD_MODELS_LOADED`. A text that ends encoders is refused by itself when it comes again (`unencodable_…`).',
  },
  {
    name: 'MaxsimdDamage',
    severity: 'page',
    expression: 'increase(maxsimd_store_records_verified_total{verdict="damaged"}[1h]) > 0',
    holds: '0m',
    summary: 'A record does not match its checksum.',
    action:
      'The storage loses data. Run `maxsimd index verify`, which names all that is damaged, then [restore](#back-up-and-restore) or import the index again, and replace the disk.',
  },
  {
    name: 'MaxsimdUsageWaits',
    severity: 'page',
    expression: 'maxsimd_usage_waiting_tenants > 0',
    holds: '5m',
    summary: 'Usage cannot be written and waits in memory.',
    action:
      'The data directory cannot be written to. [Make room](#when-the-disk-is-full); a process that dies meanwhile loses that usage.',
  },
  {
    name: 'MaxsimdMemoryFull',
    severity: 'ticket',
    expression:
      'maxsimd_engine_memory_bytes{kind="taken"} / ignoring(kind) maxsimd_engine_memory_bytes{kind="bound"} > 0.9',
    holds: '15m',
    summary: 'Nine tenths of the engine’s memory are taken by what must be there.',
    action:
      'Indexes that no longer fit will be refused (503): raise `MAXSIMD_MEMORY_MIB`, or move indexes to another host ([sizing](sizing.md)).',
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
    summary: 'Connections are closed because there are as many as there may be.',
    action:
      'A client opens too many, or they are truly so many: raise `MAXSIMD_HTTP_CONNECTIONS_MAX` with the descriptors.',
  },
  {
    name: 'MaxsimdSharedServiceFails',
    severity: 'page',
    expression: 'sum by (instance, service) (rate(maxsimd_cluster_call_failures_total[5m])) > 0.1',
    holds: '5m',
    summary: 'PostgreSQL, the object store or Redis does not answer a node, by `service`.',
    action:
      'Look at that service; the log of the node says why (`reason`). Nothing that was answered is lost, and the node goes on by itself when it is back.',
  },
  {
    name: 'MaxsimdLimiterAway',
    severity: 'ticket',
    expression: 'maxsimd_cluster_limiter_fallback == 1',
    holds: '5m',
    summary: 'Redis is away, and each node admits its share of a tenant’s rate.',
    action:
      'Bring Redis back. Until then tenants that reach few of the nodes are refused earlier than their limits say.',
  },
  {
    name: 'MaxsimdNodesLost',
    severity: 'ticket',
    expression: 'max(maxsimd_cluster_nodes) < max(max_over_time(maxsimd_cluster_nodes[1h]))',
    holds: '10m',
    summary: 'There are fewer nodes than within the last hour.',
    action:
      '`maxsimd cluster status` names the lost ones. The others serve everything meanwhile, with less room.',
  },
  {
    name: 'MaxsimdCatalogSlow',
    severity: 'ticket',
    expression:
      'histogram_quantile(0.5, sum by (instance, le) (rate(maxsimd_cluster_call_seconds_bucket{service="catalog",operation="read-heads"}[10m]))) > 0.01',
    holds: '15m',
    summary: 'The question that every search asks PostgreSQL takes longer than 10 ms.',
    action:
      'Its median is below 2 ms on a network of its own: look at PostgreSQL’s load, its connections and the way to it.',
  },
  {
    name: 'MaxsimdCatchUpSlow',
    severity: 'ticket',
    expression:
      'histogram_quantile(0.99, sum by (instance, le) (rate(maxsimd_cluster_catch_up_seconds_bucket{kind="follows"}[10m]))) > 5',
    holds: '15m',
    summary: 'Open indexes take longer than 5 s to catch up with what other nodes wrote.',
    action:
      'Searches that wait for it get 503 at their deadline. Look at the object store, and keep each index at one node by the balancer.',
  },
  {
    name: 'MaxsimdCacheSmall',
    severity: 'ticket',
    expression:
      'sum by (instance) (rate(maxsimd_cluster_cache_evictions_total[30m])) > 0 and sum by (instance) (rate(maxsimd_cluster_cache_lookups_total{outcome="miss"}[30m])) / sum by (instance) (rate(maxsimd_cluster_cache_lookups_total[30m])) > 0.1',
    holds: '30m',
    summary: 'The cache evicts what searches need: one lookup in ten misses.',
    action: 'Raise `MAXSIMD_CACHE_MIB`, or keep each index at one node by the balancer.',
  },
  {
    name: 'MaxsimdMergeLeasesLost',
    severity: 'ticket',
    expression: 'increase(maxsimd_cluster_merge_leases_total{event="lost"}[1h]) > 0',
    holds: '0m',
    summary: 'A node lost its turn to merge: it stood still for half a minute.',
    action: 'Nothing is lost, another node merges. Look for a host that swaps, is stopped or starves.',
  },
];
