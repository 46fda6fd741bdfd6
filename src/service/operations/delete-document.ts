/** Deletes one document by its id, or several by their metadata, in one transaction. An open index then makes it visible. */
import type { CommitDeleteVersionsResult } from '../../catalog/contract.ts';
import { invalid, type ServiceError } from '../../errors.ts';
import type { CommitWork } from '../../index/contract.ts';
import { conditionTree } from '../../index/terms/condition.ts';
import { everyDocumentMeets } from '../../index/terms/every-document.ts';
import { monthOf } from '../calendar-month.ts';
import type { DeleteMatchingRequest, DeletedMatching, RequestContext } from '../contract.ts';
import { missingIndex } from '../indexes/indexes.ts';
import { assertWanted, type OperationDeps } from '../operation-deps.ts';
import { hintFor } from '../hints/hints.ts';
import { withMatching } from './read-index.ts';
import { filtersFor } from './search.ts';
import { endExpired } from './unexpired.ts';

/** Returns whether there was such a document. */
export async function deleteDocument(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  docId: string,
): Promise<boolean> {
  const { id } = await deps.indexes.usableRow(context.tenant.id, indexId);
  const stored = await deps.catalog.findDocument(id, docId);
  const hadExpired = stored !== undefined && deps.expiry.hasExpired(stored);
  const deleted = await commitDeletion(deps, context, indexId, async (input) => {
    const result = await deps.catalog.commitDelete({ ...input, docId });
    return result.outcome === 'committed' ? { ...result, died: [result.died] } : result;
  });
  return deleted > 0 && !hadExpired;
}

/** Deletes the `limit` oldest documents that match. One that is replaced meanwhile stays. */
export async function deleteMatching(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  { limit, dryRun, ...wanted }: DeleteMatchingRequest,
): Promise<DeletedMatching> {
  const filters = filtersFor(wanted, '');
  if (filters.filterTerms === undefined && isMetByAll(wanted.where)) throw unconditional();
  await endExpired(deps, context, await deps.indexes.usableRow(context.tenant.id, indexId));
  const { matching, hint } = await withMatching(deps, context, indexId, filters, async (found, reader) => ({
    matching: found,
    hint: await hintFor(deps, context, reader, { ...wanted, indexId, found: found.length }),
  }));
  if (dryRun) return { deleted: 0, more: false, matching: matching.length, ...hint };
  if (matching.length === 0) return { deleted: 0, more: false, ...hint };
  assertWanted(context, deps.nowMs());
  const versionIds = [...matching.subarray(0, limit)];
  const deleted = await commitDeletion(deps, context, indexId, (input) =>
    deps.catalog.commitDeleteVersions({ ...input, versionIds }),
  );
  return { deleted, more: matching.length > limit, ...hint };
}

function isMetByAll(where: DeleteMatchingRequest['where']): boolean {
  return where === undefined || everyDocumentMeets(conditionTree(where, 'where'));
}

/** A condition that was left empty by mistake must not delete every document. */
function unconditional(): ServiceError {
  return invalid(
    '',
    'the request has no condition, or one that every document meets, so it would delete them all; narrow filter or where, or delete the index',
    'too_small',
  );
}

type Deletion = Parameters<OperationDeps['catalog']['commitDeleteVersions']>[0];

async function commitDeletion(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  commit: (input: Omit<Deletion, 'versionIds'>) => Promise<CommitDeleteVersionsResult>,
): Promise<number> {
  const result = await deps.indexes.commitDelete(indexId, () => claimed(deps, context, indexId, commit));
  if (result.outcome === 'index_missing') throw missingIndex();
  return result.outcome === 'committed' ? result.died.length : 0;
}

/** Runs the transaction, which also counts the request. */
async function claimed(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  commit: (input: Omit<Deletion, 'versionIds'>) => Promise<CommitDeleteVersionsResult>,
): Promise<CommitWork<CommitDeleteVersionsResult>> {
  const tenantId = context.tenant.id;
  let result: CommitDeleteVersionsResult;
  try {
    const usage = deps.usage.event(tenantId, { month: monthOf(deps.nowMs()) });
    result = await commit({ tenantId, indexId, usage });
  } catch (error) {
    // The commit may have happened and counted the request, which must not be counted twice.
    deps.usage.claim(context);
    throw error;
  }
  if (result.outcome !== 'committed') return { result };
  deps.usage.claim(context);
  return { result, commit: result };
}
