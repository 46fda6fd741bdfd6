/** What an index is made of: its segments as they are now, for people who look at it. */
import type { IndexDescription, RequestContext } from '../contract.ts';
import { modelOfIndex } from '../indexes/served-models.ts';
import { timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';

export async function describeIndex(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
): Promise<IndexDescription> {
  const row = await timed(context, 'index', () => deps.indexes.usableRow(context.tenant.id, indexId));
  const head = deps.indexes.head(row.id);
  const model = await modelOfIndex(deps.encoders, row, context);
  const timeoutMs = timeLeftMs(context, deps.nowMs());
  const { segments, recordsLive } = await deps.indexes.use(
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
