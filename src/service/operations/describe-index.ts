/** Describes indexes as they are now, for people who look at them. */
import type { IndexContents, IndexDescription, RequestContext } from '../contract.ts';
import { timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { countDocuments } from './lists.ts';
import { readableIndex } from './read-index.ts';

/** More would make one request too dear. */
const countedIndexesMax = 100;

export async function describeIndex(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
): Promise<IndexDescription> {
  const { read } = await readableIndex(deps, context, indexId);
  const timeoutMs = timeLeftMs(context, deps.nowMs());
  const { segments, recordsLive } = await read((reader) =>
    timed(context, 'statistics', () => reader.statistics(timeoutMs)),
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

export async function contentsOfIndexes(
  deps: OperationDeps,
  context: RequestContext,
): Promise<readonly IndexContents[]> {
  const rows = await deps.catalog.listIndexes(context.tenant.id, {
    after: undefined,
    limit: countedIndexesMax,
  });
  const contents: IndexContents[] = [];
  for (const { id } of rows) {
    const { documents, chunks } = await countDocuments(deps, context, id);
    const bytes = deps.indexes.bytesIfOpen(id);
    contents.push({ id, documents, chunks, ...(bytes === undefined ? {} : { bytes }) });
  }
  return contents;
}
