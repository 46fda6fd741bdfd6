/** Describes the segments of an index as they are now, for people who look at it. */
import type { IndexDescription, RequestContext } from '../contract.ts';
import { timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { readableIndex } from './read-index.ts';

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
