/** Every metric of a server and of a node, for documents and dashboards. Values are read at a scrape, so no service is needed. */
import { createRequestObserver } from '../../http/observation.ts';
import { createMetrics, type RegisteredMetric } from '../../observation/metrics.ts';
import { observeCluster, registerClusterState } from './cluster-metrics.ts';
import { countTraceSpans, registerServiceMetrics } from './service-metrics.ts';

export function describeMetrics(): readonly RegisteredMetric[] {
  const metrics = createMetrics();
  const absent = undefined as never;
  createRequestObserver(absent, metrics);
  registerServiceMetrics(metrics, { service: absent, backend: absent, engine: absent, encoders: absent });
  countTraceSpans(metrics);
  observeCluster(metrics);
  registerClusterState(metrics, absent);
  return metrics.descriptions();
}
