/** Commits versions whose records have been appended, together with their usage. Everything that writes documents ends here. */
import type { IndexRow } from '../../catalog/contract.ts';
import type { CommitUpsertResult, NewVersion, UsageEvent } from '../../contracts/document-commits.ts';
import { assertInvariant } from '../../errors.ts';
import type { IndexWriter } from '../../index/contract.ts';
import type { RecordLocation } from '../../contracts/index-state.ts';
import type { RequestContext } from '../contract.ts';
import type { OperationDeps } from '../operation-deps.ts';

/** A version without its place, which is known when all records are durable. */
export type UnplacedVersion = Omit<NewVersion, keyof RecordLocation>;

export async function commitVersions(
  deps: Pick<OperationDeps, 'usage'>,
  context: RequestContext,
  input: {
    readonly row: Pick<IndexRow, 'id'>;
    readonly writer: IndexWriter;
    /** In the order of the appends. */
    readonly versions: readonly UnplacedVersion[];
    readonly usage: Pick<UsageEvent, 'month' | 'inputTokens' | 'documentUpserts'>;
  },
): Promise<CommitUpsertResult['outcome']> {
  const { row, writer, versions, usage } = input;
  let hasBegun = false;
  const startedAt = performance.now();
  try {
    const { outcome } = await writer.commit(({ locations, segments }) => {
      hasBegun = true;
      context.timings.note('sync', { within: 'commit', startedAt, ms: performance.now() - startedAt });
      return {
        tenantId: context.tenant.id,
        indexId: row.id,
        documents: versions.map((version, place) => {
          const location = locations[place];
          assertInvariant(location !== undefined, 'every document has a record');
          return { ...version, segmentId: location.segmentId, record: location.record };
        }),
        documentsMax: context.tenant.limits.documents,
        inputTokensMax: context.tenant.limits.inputTokens,
        segments,
        usage: deps.usage.event(context.tenant.id, usage),
      };
    });
    if (outcome === 'committed') deps.usage.claim(context);
    return outcome;
  } catch (error) {
    // The commit may have happened and counted the request, which must not be counted twice.
    if (hasBegun) deps.usage.claim(context);
    throw error;
  }
}
