/** Finds the documents of an index that have certain metadata, without a query. */
import { invalid, type ServiceError } from '../../errors.ts';
import type { RequestContext, SearchRequest } from '../contract.ts';
import { askerOf, timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { readableIndex } from './read-index.ts';
import { filtersFor } from './search.ts';

export type MetadataFilter = Pick<SearchRequest, 'filter' | 'where'>;

/**
 * Ids of the versions that match now, ascending: at most one for each stored document.
 * @throws {ServiceError} `validation_error` when `where` is no condition, or every document meets both; `not_found`.
 */
export async function matchingVersions(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  wanted: MetadataFilter,
): Promise<Float64Array> {
  const filters = filtersFor(wanted, '');
  if (filters.filterTerms === undefined && filters.where === undefined) throw unconditional();
  const { read } = await readableIndex(deps, context, indexId);
  const timeoutMs = timeLeftMs(context, deps.nowMs());
  return await read((reader) =>
    timed(context, 'engine', () => reader.matching({ ...filters, timeoutMs }, askerOf(deps, context))),
  );
}

/** A condition that was left empty by mistake must not delete every document. */
function unconditional(): ServiceError {
  return invalid(
    '',
    'filter and where must hold a condition that a document can fail; to delete every document, delete the index',
    'too_small',
  );
}
