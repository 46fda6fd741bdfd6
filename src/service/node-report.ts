/** The report that a node sends with every heartbeat, for people (`maxsimd cluster status`) and for metrics. */
import { z } from 'zod';
import type { ClusterCatalog } from '../catalog/cluster-contract.ts';
import type { FollowedIndex } from '../index/contract.ts';
import type { BlobCache } from '../index/storage/blob-cache.ts';

export const nodeReportSchema = z.object({
  version: z.string(),
  /** The versions that it can serve. Empty before its encoders are known, and absent from older releases. */
  models: z.array(z.object({ name: z.string(), version: z.string() })).optional(),
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
    cache: { bytes, bytes_max: bytesMax, files },
    indexes: { open: followed.length, behind_max: Math.max(0, ...behind) },
  };
}

/** `undefined` when another release wrote a report that this one does not understand. */
export function readNodeReport(text: string): NodeReport | undefined {
  try {
    return nodeReportSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
