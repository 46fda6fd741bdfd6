/** What an index is made of: its segments as they are now, for people who look at it. */
import type { IndexDescription, RequestContext } from '../contract.ts';
import { modelOfIndex } from '../indexes/served-models.ts';
import { timed, timeLeftMs, type ServiceParts } from '../parts.ts';

export async function describeIndex(
  parts: ServiceParts,
  context: RequestContext,
  indexId: string,
): Promise<IndexDescription> {
  const row = await timed(context, 'index', () => parts.indexes.usableRow(context.tenant.id, indexId));
  const head = parts.indexes.head(row.id);
  const model = await modelOfIndex(parts.encoder, row, context);
  const timeoutMs = timeLeftMs(context, parts.nowMs());
  const { segments, recordsLive } = await parts.indexes.use(
    row,
    (stored) =>
      stored.read((reader) => timed(context, 'statistics', () => reader.statistics(timeoutMs)), head),
    model,
  );
  return {
    documents: recordsLive,
    segments: segments.map((segment) => ({
      state: segment.state,
      documents: segment.recordsLive,
      records: segment.records,
      chunks: segment.chunks,
      tokenVectors: segment.tokenVectors,
      bytes: segment.fileBytes,
      derivedBytes: segment.derivedBytes,
      centroids: segment.centroids,
    })),
  };
}
