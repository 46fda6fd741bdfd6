/** Deleting a document: one transaction, then made visible wherever the index is open. Idempotent. */
import type { CommitDeleteResult } from '../../catalog/contract.ts';
import type { CommitWork } from '../../index/contract.ts';
import { monthOf } from '../calendar-month.ts';
import type { RequestContext } from '../contract.ts';
import { missingIndex } from '../indexes/indexes.ts';
import type { ServiceParts } from '../parts.ts';

export async function deleteDocument(
  parts: ServiceParts,
  context: RequestContext,
  indexId: string,
  docId: string,
): Promise<boolean> {
  await parts.indexes.usableRow(context.tenant.id, indexId);
  const transaction = () => commitDelete(parts, context, indexId, docId);
  const outcome =
    (await parts.indexes.useIfOpen(indexId, (stored) => stored.commitDelete(transaction))) ??
    (await deleteFromClosed(parts, indexId, transaction));
  if (outcome === 'index_missing') throw missingIndex();
  return outcome === 'committed';
}

/** Opening an index to delete from it would be waste; but an open that begins meanwhile may read the state before. */
async function deleteFromClosed(
  parts: ServiceParts,
  indexId: string,
  transaction: () => Promise<CommitWork<CommitDeleteResult['outcome']>>,
): Promise<CommitDeleteResult['outcome']> {
  const { result, commit } = await transaction();
  if (commit !== undefined) {
    await parts.indexes.useIfOpen(indexId, (stored) => stored.catchUp(commit.generation));
  }
  return result;
}

async function commitDelete(
  parts: ServiceParts,
  context: RequestContext,
  indexId: string,
  docId: string,
): Promise<CommitWork<CommitDeleteResult['outcome']>> {
  const tenantId = context.tenant.id;
  let deleted: CommitDeleteResult;
  try {
    deleted = await parts.catalog.commitDelete({
      tenantId,
      indexId,
      docId,
      usage: parts.usage.event(tenantId, { month: monthOf(parts.nowMs()) }),
    });
  } catch (error) {
    // It may have been counted: never count twice.
    parts.usage.claim(context);
    throw error;
  }
  if (deleted.outcome !== 'committed') return { result: deleted.outcome };
  parts.usage.claim(context);
  return { result: deleted.outcome, commit: { generation: deleted.generation, died: [deleted.died] } };
}
