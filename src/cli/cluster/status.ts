/** `maxsimd cluster status`: shows the nodes and their shared data, from the catalog. */
import type { Config } from '../../app/config.ts';
import type { ClusterNodeRow } from '../../catalog/cluster-contract.ts';
import type { ClusterStatus } from '../../catalog/postgres/reads/cluster-status.ts';
import { nodeLiveMs } from '../../catalog/cluster-contract.ts';
import { readNodeReport } from '../../service/node-report.ts';
import { fields, mebibytes, table, timestamp, type CommandResult } from '../output.ts';
import { withCluster } from './cluster-access.ts';

export function clusterStatus(config: Config): Promise<CommandResult> {
  return withCluster(config, async ({ catalog, operator }) => {
    const [nodes, status] = [await catalog.listNodes(), await operator.status()];
    return { document: documentOf(nodes, status), text: textOf(nodes, status) };
  });
}

function documentOf(nodes: readonly ClusterNodeRow[], status: ClusterStatus): object {
  const { schemaVersion, tenants, indexes, documents, segments, leases } = status;
  return {
    schema_version: schemaVersion,
    tenants,
    indexes,
    documents,
    nodes: nodes.map((node) => ({
      node_id: node.id,
      name: node.name,
      live: isLive(node),
      started_at: timestamp(node.startedAtMs),
      seen_seconds_ago: secondsAgo(node),
      report: readNodeReport(node.report) ?? null,
    })),
    segments: segments.map(({ oldestSeconds, ...counts }) => ({ ...counts, oldest_seconds: oldestSeconds })),
    merge_leases: leases.map(({ indexId, nodeId, nodeName, fence, until }) => ({
      index_id: indexId,
      node_id: nodeId,
      node: nodeName,
      fence,
      until: until.toISOString(),
    })),
  };
}

function textOf(nodes: readonly ClusterNodeRow[], status: ClusterStatus): string {
  const { schemaVersion, tenants, indexes, documents, segments, leases } = status;
  const parts = [
    fields([
      ['catalog', `schema version ${schemaVersion}`],
      ['stored', `${documents} documents in ${indexes} indexes of ${tenants} tenants`],
    ]),
    nodes.length === 0 ? 'no node' : nodesTable(nodes),
    table(
      ['segments', 'count', 'objects', 'MiB', 'oldest s'],
      segments.map((row) => [
        { uploading: 'being put', sealed: 'named', replaced: 'garbage' }[row.state],
        String(row.segments),
        String(row.objects),
        mebibytes(row.bytes),
        String(row.oldestSeconds),
      ]),
      ['count', 'objects', 'MiB', 'oldest s'],
    ),
    leases.length === 0
      ? 'no node merges'
      : table(
          ['merged index', 'by', 'fence', 'until'],
          leases.map(({ indexId, nodeId, nodeName, fence, until }) => [
            indexId,
            nodeName ?? nodeId,
            String(fence),
            until.toISOString(),
          ]),
          ['fence'],
        ),
  ];
  return parts.join('\n\n');
}

function nodesTable(nodes: readonly ClusterNodeRow[]): string {
  const numeric = ['seen s ago', 'cache MiB', 'of MiB', 'open indexes', 'commits behind'];
  return table(
    ['node', 'state', ...numeric, 'version', 'started'],
    nodes.map((node) => {
      const report = readNodeReport(node.report);
      const figures =
        report === undefined
          ? ['?', '?', '?', '?', '?']
          : [
              mebibytes(report.cache.bytes),
              mebibytes(report.cache.bytes_max),
              String(report.indexes.open),
              String(report.indexes.behind_max),
              report.version,
            ];
      return [
        node.name,
        isLive(node) ? 'live' : 'lost',
        String(secondsAgo(node)),
        ...figures,
        timestamp(node.startedAtMs),
      ];
    }),
    numeric,
  );
}

function isLive({ seenMsAgo }: ClusterNodeRow): boolean {
  return seenMsAgo < nodeLiveMs;
}

function secondsAgo({ seenMsAgo }: ClusterNodeRow): number {
  return Math.round(seenMsAgo / 1000);
}
