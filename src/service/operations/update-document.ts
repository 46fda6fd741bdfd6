/**
 * Replaces the metadata of a document, merges a patch into it, or changes when it expires, without encoding it again. The record is read and written
 * once more, as the record of a new version with other filter terms. The rest is as in an upsert: the new version is durable and
 * visible to every later search, and the old one dies in the same commit. The commit names the version that it replaces. If an
 * upsert or another change came between, the commit changes nothing, and the newer version is taken. So of changes at once
 * that merge, all count.
 */
import type { CommitUpsertResult, DocumentVersion } from '../../contracts/document-commits.ts';
import type { StoredDocument } from '../../catalog/contract.ts';
import { assertInvariant, invalid } from '../../errors.ts';
import { mergePatch } from '../../index/terms/merge-patch.ts';
import { recordTerms } from '../../index/terms/match-terms.ts';
import { monthOf } from '../calendar-month.ts';
import {
  metadataBytesMax,
  type DocumentChange,
  type JsonObjectText,
  type RequestContext,
} from '../contract.ts';
import { missingIndex } from '../indexes/indexes.ts';
import { assertWanted, timed, timeLeftMs, type OperationDeps } from '../operation-deps.ts';
import { commitVersions } from './commit-versions.ts';
import { missingDocument } from './lists.ts';

export interface DocumentUpdate extends DocumentChange {
  readonly indexId: string;
  readonly docId: string;
}

export async function updateDocument(
  deps: OperationDeps,
  context: RequestContext,
  update: DocumentUpdate,
): Promise<StoredDocument> {
  const { indexId, docId } = update;
  const row = await timed(context, 'index', () => deps.indexes.writableRow(context.tenant.id, indexId));
  const { id, matchFields } = row;
  for (;;) {
    assertWanted(context, deps.nowMs());
    const live = await deps.catalog.findDocument(id, docId);
    if (live === undefined || deps.expiry.hasExpired(live)) {
      await deps.indexes.assertExists(context.tenant.id, id);
      throw missingDocument();
    }
    const changed = changedBy(update, live);
    const terms = recordTerms(changed.metadata, matchFields);
    const outcome = await replace(deps, context, indexId, { live, changed, terms });
    if (outcome === 'index_missing') throw missingIndex();
    if (outcome === 'committed') return { docId, chunkCount: live.chunkCount, ...changed };
    assertInvariant(outcome === 'document_changed', `an update of metadata has the outcome ${outcome}`);
  }
}

type Changed = Pick<DocumentVersion, 'metadata' | 'expiresAtMs'>;

function changedBy({ metadata, metadataMerge, expiresAtMs }: DocumentChange, live: DocumentVersion): Changed {
  const expires = expiresAtMs === undefined ? live.expiresAtMs : (expiresAtMs ?? undefined);
  return {
    metadata:
      metadataMerge === undefined
        ? (metadata ?? live.metadata)
        : mergedMetadata(live.metadata, metadataMerge),
    ...(expires === undefined ? {} : { expiresAtMs: expires }),
  };
}

function mergedMetadata(stored: JsonObjectText, patch: JsonObjectText): JsonObjectText {
  const merged = mergePatch(stored, patch);
  const bytes = Buffer.byteLength(merged);
  if (bytes <= metadataBytesMax) return merged;
  const message = `the metadata would have ${bytes} bytes, at most ${metadataBytesMax} are allowed`;
  throw invalid('metadata_merge', message, 'too_big');
}

interface Replacement {
  readonly live: DocumentVersion;
  readonly changed: Changed;
  readonly terms: Uint8Array;
}

async function replace(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  { live, changed, terms }: Replacement,
): Promise<CommitUpsertResult['outcome']> {
  const { docId, versionId: replaces, chunkCount, tokenVectors } = live;
  return await deps.indexes.useWithoutModel({ id: indexId, tenantId: context.tenant.id }, async (index) => {
    const record = await timed(context, 'read', () =>
      index.readRecord(live, timeLeftMs(context, deps.nowMs())),
    );
    if (record === undefined) return 'document_changed';
    assertInvariant(record.versionId === replaces, 'a record is that of its version');
    const [versionId] = await deps.catalog.allocateIds(1);
    assertInvariant(versionId !== undefined, 'one id was asked for');
    return await index.write(async (writer) => {
      await timed(context, 'append', () => writer.append({ ...record, versionId, terms }));
      assertWanted(context, deps.nowMs());
      return await timed(context, 'commit', () =>
        commitVersions(deps, context, {
          row: { id: indexId },
          writer,
          versions: [{ docId, versionId, chunkCount, tokenVectors, replaces, ...changed }],
          usage: { month: monthOf(deps.nowMs()) },
        }),
      );
    });
  });
}
