/** Makes an answer that holds no document which has expired by then. */
import type { IndexRow, StoredDocument } from '../../catalog/contract.ts';
import { askAgain } from '../../index/ask-again.ts';
import { before } from '../../index/asking.ts';
import type { RequestContext } from '../contract.ts';
import { assertWanted, timeLeftMs, type OperationDeps } from '../operation-deps.ts';

type ExpiryDeps = Pick<OperationDeps, 'expiry' | 'nowMs'>;
type OwnedIndex = Pick<IndexRow, 'id' | 'tenantId'>;

class ExpiredResult extends Error {
  override readonly name = 'ExpiredResult';
}

/** Runs `work` again, after the expired documents are ended, while it meets one of them. */
export function unexpired<T>(
  deps: ExpiryDeps & Pick<OperationDeps, 'repeats'>,
  context: RequestContext,
  index: OwnedIndex,
  work: () => Promise<T>,
): Promise<T> {
  const mend = async (error: unknown) => {
    if (!(error instanceof ExpiredResult)) return undefined;
    await endExpired(deps, context, index);
    return 'expired';
  };
  return askAgain(deps.repeats, mend, work);
}

/** For `work`: throws if one of the documents has expired. */
export function assertUnexpired(
  { expiry }: Pick<OperationDeps, 'expiry'>,
  versions: Iterable<Pick<StoredDocument, 'expiresAtMs'>>,
): void {
  for (const version of versions) if (expiry.hasExpired(version)) throw new ExpiredResult();
}

/** Ends the expired documents of an index, within the deadline of the request. The rest goes on afterwards. */
export async function endExpired(
  { expiry, nowMs }: ExpiryDeps,
  context: RequestContext,
  { tenantId, id }: OwnedIndex,
): Promise<void> {
  assertWanted(context, nowMs());
  const endsAt = performance.now() + timeLeftMs(context, nowMs());
  await before(
    endsAt,
    expiry.end(tenantId, id),
    'documents that have expired are being removed',
    context.signal,
  );
}
