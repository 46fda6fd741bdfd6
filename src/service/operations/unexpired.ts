/** Makes an answer that holds no document which has expired by then. */
import type { IndexRow, ResolvedVersion } from '../../catalog/contract.ts';
import { before } from '../../index/asking.ts';
import type { RequestContext } from '../contract.ts';
import { assertWanted, timeLeftMs, type OperationDeps } from '../operation-deps.ts';

class ExpiredResult extends Error {
  override readonly name = 'ExpiredResult';
}

/** Runs `work` again, after the expired documents are ended, while it meets one of them. */
export async function unexpired<T>(
  { expiry, nowMs }: Pick<OperationDeps, 'expiry' | 'nowMs'>,
  context: RequestContext,
  row: Pick<IndexRow, 'id' | 'tenantId'>,
  work: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ExpiredResult)) throw error;
      assertWanted(context, nowMs());
      const endsAt = performance.now() + timeLeftMs(context, nowMs());
      const ending = expiry.end(row.tenantId, row.id);
      await before(endsAt, ending, 'documents that have expired are being removed', context.signal);
    }
  }
}

/** For `work`: throws if one of the documents has expired. */
export function assertUnexpired(
  { expiry }: Pick<OperationDeps, 'expiry'>,
  versions: Iterable<Pick<ResolvedVersion, 'expiresAtMs'>>,
): void {
  for (const version of versions) if (expiry.hasExpired(version)) throw new ExpiredResult();
}
