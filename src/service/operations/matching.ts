/** Finds the documents of an index that have certain metadata, without a query. */
import type { NativeMatching } from '../../index/engine/native.ts';
import type { RequestContext } from '../contract.ts';
import { askerOf, timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { readableIndex } from './read-index.ts';

/**
 * Runs `work` with the ids of the versions that match now, ascending: at most one for each stored document. The catalog keeps
 * them until `work` settles.
 * @throws {ServiceError} `not_found`
 */
export async function withMatching<T>(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  filters: Pick<NativeMatching, 'filterTerms' | 'where'>,
  work: (versionIds: Float64Array) => Promise<T>,
): Promise<T> {
  const { read } = await readableIndex(deps, context, indexId);
  const timeoutMs = timeLeftMs(context, deps.nowMs());
  return await read(async (reader) =>
    work(
      await timed(context, 'engine', () =>
        reader.matching({ ...filters, timeoutMs }, askerOf(deps, context)),
      ),
    ),
  );
}
