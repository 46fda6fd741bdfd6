/** Which documents of an index have certain metadata, without a query. */
import { invalid, type ServiceError } from '../../errors.ts';
import type { JsonObjectText, RequestContext } from '../contract.ts';
import type { Asker } from '../../index/contract.ts';
import { unitsOfSearch } from '../limits/work.ts';
import { modelOfIndex } from '../indexes/served-models.ts';
import { pieceOf, timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { filtersFor } from './search.ts';

export interface MetadataFilter {
  readonly filter?: JsonObjectText | undefined;
  readonly where?: JsonObjectText | undefined;
}

/**
 * Ids of the versions that match now, ascending: at most one for each stored document, of 8 bytes. A version that was
 * replaced since is none of the index's documents any more.
 * @throws {ServiceError} `validation_error` when `where` is no condition, or every document meets both whatever it holds; `not_found`.
 */
export async function matchingVersions(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  wanted: MetadataFilter,
): Promise<Float64Array> {
  const filters = filtersFor(wanted, '');
  if (filters.filterTerms === undefined && filters.where === undefined) throw unconditional();
  const row = await timed(context, 'index', () => deps.indexes.usableRow(context.tenant.id, indexId));
  const head = deps.indexes.head(row.id);
  const model = await modelOfIndex(deps.encoders, row, context);
  const piece = pieceOf(context, unitsOfSearch);
  const asker: Asker = {
    signal: context.signal,
    inTurn: (task) => deps.engineQueue.run(context.tenant.id, piece, task),
  };
  const timeoutMs = timeLeftMs(context, deps.nowMs());
  return await deps.indexes.use(
    row,
    (stored) =>
      stored.read(
        (reader) => timed(context, 'engine', () => reader.matching({ ...filters, timeoutMs }, asker)),
        head,
      ),
    model,
  );
}

/** Everything is deleted with the index, not by a condition that was left empty. */
function unconditional(): ServiceError {
  return invalid(
    '',
    'filter and where must hold a condition that a document can fail; to delete every document, delete the index',
    'too_small',
  );
}
