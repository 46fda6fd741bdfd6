/** The report that a node sends with every heartbeat, for people (`maxsimd cluster status`) and for metrics. */
import { z } from 'zod';
import { nodeLiveMs, type ClusterCatalog } from '../catalog/cluster-contract.ts';
import { unavailable } from '../errors.ts';
import type { FollowedIndex } from '../index/contract.ts';
import type { BlobCache } from '../index/storage/blob-cache.ts';

/** This release may do these only once every node knows them. */
export const knownHere = ['match_fields'] as const;
export type Known = (typeof knownHere)[number];

export const nodeReportSchema = z.object({
  version: z.string(),
  /** The versions that it can serve. Empty before its encoders are known, and absent from older releases. */
  models: z.array(z.object({ name: z.string(), version: z.string() })).optional(),
  /** Its `knownHere`. Absent from older releases. */
  knows: z.array(z.string()).optional(),
  cache: z.object({ bytes: z.number(), bytes_max: z.number(), files: z.number() }),
  indexes: z.object({
    open: z.number(),
    /** Commits that the node lacks of the open index that it is furthest behind with. The next search there catches up first. */
    behind_max: z.number(),
  }),
});
export type NodeReport = z.output<typeof nodeReportSchema>;

export interface ReportingNode {
  readonly version: string;
  readonly models: readonly { readonly name: string; readonly version: string }[];
  readonly catalog: Pick<ClusterCatalog, 'readHead'>;
  readonly cache: Pick<BlobCache, 'statistics'>;
  readonly followed: readonly FollowedIndex[];
}

export async function nodeReport(node: ReportingNode): Promise<NodeReport> {
  const { version, models, catalog, cache, followed } = node;
  const { bytes, bytesMax, files } = cache.statistics;
  const behind = await Promise.all(
    followed.map(async ({ indexId, generation }) => {
      const head = await catalog.readHead(indexId);
      return Math.max(0, (head?.generation ?? 0) - Math.max(0, generation));
    }),
  );
  return {
    version,
    models: models.map(({ name, version: modelVersion }) => ({ name, version: modelVersion })),
    knows: [...knownHere],
    cache: { bytes, bytes_max: bytesMax, files },
    indexes: { open: followed.length, behind_max: Math.max(0, ...behind) },
  };
}

/**
 * Asserts that every live node, as the catalog has it now, knows something. `what`: in the words of an answer, which tenants
 * read. So it names no node.
 * @throws {ServiceError} `service_unavailable`
 */
export async function assertKnownEverywhere(
  catalog: Pick<ClusterCatalog, 'listNodes'>,
  known: Known,
  what: string,
): Promise<void> {
  const live = (await catalog.listNodes()).filter(({ seenMsAgo }) => seenMsAgo < nodeLiveMs);
  const older = live.filter(({ report }) => readNodeReport(report)?.knows?.includes(known) !== true);
  if (older.length === 0) return;
  const state = `${older.length} of ${live.length} nodes run an earlier release`;
  throw unavailable(`${what} can be set once every node knows them: ${state}`, undefined, nodeLiveMs / 1000);
}

/** `undefined` when another release wrote a report that this one does not understand. */
export function readNodeReport(text: string): NodeReport | undefined {
  try {
    return nodeReportSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
