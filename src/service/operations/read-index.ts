/** Prepares a read of an index: its row, its model, and the head that the read must have reached. */
import type { IndexRow } from '../../catalog/contract.ts';
import type { EncoderModel } from '../../encoder/protocol/contract.ts';
import type { IndexReader } from '../../index/contract.ts';
import type { NativeMatching } from '../../index/engine/native.ts';
import type { RequestContext } from '../contract.ts';
import { modelOfIndex } from '../indexes/served-models.ts';
import { askerOf, timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';

export interface ReadableIndex {
  readonly row: IndexRow;
  readonly model: EncoderModel;
  /** Runs `work` on a snapshot that sees all that was answered before the index was prepared. */
  readonly read: <T>(work: (reader: IndexReader) => Promise<T>) => Promise<T>;
}

/** @throws {ServiceError} `not_found`, `internal_error` when the index is damaged, `service_unavailable` without its model. */
export async function readableIndex(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
): Promise<ReadableIndex> {
  const row = await timed(context, 'index', () => deps.indexes.usableRow(context.tenant.id, indexId));
  let head = deps.indexes.head(row.id);
  const model = await modelOfIndex(deps.encoders, row, context);
  return {
    row,
    model,
    async read(work) {
      // A later read must see what was answered before it.
      const asked = head ?? deps.indexes.head(row.id);
      head = undefined;
      return await deps.indexes.use(row, (index) => index.read(work, asked), model);
    },
  };
}

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
  work: (versionIds: Float64Array, reader: IndexReader) => Promise<T>,
): Promise<T> {
  const { read } = await readableIndex(deps, context, indexId);
  const timeoutMs = timeLeftMs(context, deps.nowMs());
  return await read(async (reader) =>
    work(
      await timed(context, 'engine', () =>
        reader.matching({ ...filters, timeoutMs }, askerOf(deps, context)),
      ),
      reader,
    ),
  );
}
