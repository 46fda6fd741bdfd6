/**
 * Replaces the metadata of a document without encoding it again. The record is read and written once more, as the record of a
 * new version with other filter terms. The rest is as in an upsert: the new version is durable and visible to every later
 * search, and the old one dies in the same commit. The commit names the version that it replaces. If an upsert came between,
 * the commit changes nothing, and the newer version is taken.
 */
import type { CommitUpsertResult, DocumentVersion } from '../../document-commits.ts';
import type { StoredDocument } from '../../catalog/contract.ts';
import { assertInvariant } from '../../errors.ts';
import { metadataTerms } from '../../index/terms/metadata-terms.ts';
import { monthOf } from '../calendar-month.ts';
import type { JsonObjectText, RequestContext } from '../contract.ts';
import { missingIndex } from '../indexes/indexes.ts';
import { assertWanted, timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { commitVersions } from './commit-versions.ts';
import { missingDocument } from './lists.ts';

export interface MetadataUpdate {
  readonly indexId: string;
  readonly docId: string;
  readonly metadata: JsonObjectText;
}

export async function updateMetadata(
  deps: OperationDeps,
  context: RequestContext,
  update: MetadataUpdate,
): Promise<StoredDocument> {
  const { indexId, docId, metadata } = update;
  const { id } = await timed(context, 'index', () => deps.indexes.usableRow(context.tenant.id, indexId));
  for (;;) {
    assertWanted(context, deps.nowMs());
    const live = await deps.catalog.findDocument(id, docId);
    if (live === undefined) {
      await deps.indexes.assertExists(context.tenant.id, id);
      throw missingDocument();
    }
    const outcome = await replace(deps, context, update, live);
    if (outcome === 'index_missing') throw missingIndex();
    if (outcome === 'committed') return { docId, metadata, chunkCount: live.chunkCount };
    assertInvariant(outcome === 'document_changed', `an update of metadata has the outcome ${outcome}`);
  }
}

async function replace(
  deps: OperationDeps,
  context: RequestContext,
  { indexId, metadata }: MetadataUpdate,
  live: DocumentVersion,
): Promise<CommitUpsertResult['outcome']> {
  const { docId, versionId: replaces, chunkCount, tokenVectors } = live;
  return await deps.indexes.useWithoutModel(indexId, async (index) => {
    const record = await timed(context, 'read', () =>
      index.readRecord(live, timeLeftMs(context, deps.nowMs())),
    );
    if (record === undefined) return 'document_changed';
    assertInvariant(record.versionId === replaces, 'a record is that of its version');
    const [versionId] = await deps.catalog.allocateIds(1);
    assertInvariant(versionId !== undefined, 'one id was asked for');
    return await index.write(async (writer) => {
      await timed(context, 'append', () =>
        writer.append({ ...record, versionId, terms: metadataTerms(metadata) }),
      );
      assertWanted(context, deps.nowMs());
      return await timed(context, 'commit', () =>
        commitVersions(deps, context, {
          row: { id: indexId },
          writer,
          versions: [{ docId, versionId, metadata, chunkCount, tokenVectors, replaces }],
          usage: { month: monthOf(deps.nowMs()) },
        }),
      );
    });
  });
}
