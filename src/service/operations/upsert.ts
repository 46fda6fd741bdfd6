/**
 * Upserts a batch of documents. It counts and reserves the tokens, encodes, appends each document as it arrives, makes all
 * durable, commits in one transaction, publishes and answers. Nothing is stored, replaced or charged before the commit.
 * A commit that has begun completes even if the caller has gone.
 *
 * The tokens of upserted documents are charged. A failed document costs nothing, and the document that was stored under its id
 * stays.
 */
import type { IndexRow, Tenant } from '../../catalog/contract.ts';
import type { CommitUpsertResult } from '../../contracts/document-commits.ts';
import type { EncodedDocument, EncoderModel, EncodeTimings } from '../../encoder/protocol/contract.ts';
import { assertInvariant, invalid, type ServiceError } from '../../errors.ts';
import { recordTerms } from '../../index/terms/match-terms.ts';
import type { IndexWriter } from '../../index/contract.ts';
import { monthOf } from '../calendar-month.ts';
import type {
  DocumentExpiry,
  DocumentInput,
  RequestContext,
  UnknownTokens,
  UpsertResponse,
} from '../contract.ts';
import { missingIndex } from '../indexes/indexes.ts';
import {
  assertWanted,
  encodeOptions,
  encoderStages,
  requestUsage,
  timed,
  tokensLeftBehind,
  type OperationDeps,
} from '../operation-deps.ts';
import { modelOfIndex } from '../indexes/served-models.ts';
import { serviceStage } from '../stage-timings.ts';
import { commitVersions, type UnplacedVersion } from './commit-versions.ts';
import { raisingCommand } from '../limits/raising.ts';
import { tokenAllowanceExceeded, type TokenHold } from '../limits/token-allowance.ts';

/** The documents of a batch once they are encoded and appended. */
interface PreparedUpsert {
  /** In the order of the appends. */
  readonly versions: UnplacedVersion[];
  /** In the order of the request. */
  failed: readonly { readonly docId: string; readonly error: string }[];
  readonly unknownTokens: UnknownTokens[];
  inputTokens: number;
  chunks: number;
}

export async function upsertDocuments(
  deps: OperationDeps,
  context: RequestContext,
  indexId: string,
  documents: readonly DocumentInput[],
  expiry: DocumentExpiry = {},
): Promise<UpsertResponse> {
  const row = await timed(context, 'index', () => deps.indexes.writableRow(context.tenant.id, indexId));
  const model = await modelOfIndex(deps.encoders, row, context);
  const hold = await deps.allowance.open(context.tenant);
  try {
    const prepared = await deps.indexes.use(
      row,
      (index) =>
        index.write(async (writer) => {
          const encoded = await encodeInto(deps, context, { row, model, documents, hold, writer });
          if (encoded.versions.length > 0) {
            assertWanted(context, deps.nowMs());
            const outcome = await timed(context, 'commit', () =>
              commitVersions(deps, context, {
                row,
                writer,
                versions: encoded.versions.map((version) => ({ ...version, ...expiry })),
                usage: {
                  month: hold.month,
                  inputTokens: BigInt(encoded.inputTokens),
                  documentUpserts: encoded.versions.length,
                },
              }),
            );
            assertCommitted(outcome, context.tenant, deps.nowMs());
            context.spent.documents += encoded.versions.length;
            hold.settle(BigInt(encoded.inputTokens));
          }
          return encoded;
        }),
      model,
    );
    return {
      indexId,
      upsertedDocuments: prepared.versions.length,
      upsertedChunks: prepared.chunks,
      failed: prepared.failed,
      unknownTokens: prepared.unknownTokens,
      usage: requestUsage(context, deps.nowMs(), {
        inputTokens: prepared.inputTokens,
        documentCount: prepared.versions.length,
        chunkCount: prepared.chunks,
        candidateCount: 0,
      }),
    };
  } finally {
    hold.release(tokensLeftBehind(context));
  }
}

interface AppendInput {
  readonly versionId: number;
  readonly input: DocumentInput;
  readonly document: EncodedDocument;
  readonly terms: Uint8Array;
}

interface EncodeInput {
  readonly row: IndexRow;
  readonly model: EncoderModel;
  readonly documents: readonly DocumentInput[];
  readonly hold: TokenHold;
  readonly writer: IndexWriter;
}

async function encodeInto(
  deps: OperationDeps,
  context: RequestContext,
  { row, model, documents, hold, writer }: EncodeInput,
): Promise<PreparedUpsert> {
  const prepared: PreparedUpsert = {
    versions: [],
    failed: [],
    unknownTokens: [],
    inputTokens: 0,
    chunks: 0,
  };
  const encoded = deps.encoders.encodeDocuments(
    documents.map(({ text }) => text),
    {
      ...encodeOptions(context, model),
      chunking: row.chunking,
      onLeft: (tokens) => {
        context.spent.inputTokens += tokens;
      },
      onTokenCounts: async (inputTokens) => {
        // A text without tokens will fail, so it takes none of the allowance.
        const storable = documents.filter((_document, index) => (inputTokens[index] ?? 0) > 0);
        await assertRoom(deps, context, row, storable);
        hold.reserve(inputTokens.reduce((sum, tokens) => sum + BigInt(tokens), 0n));
      },
    },
  );
  const versionIds = await deps.catalog.allocateIds(documents.length);
  const seen = new Set<number>();
  const errors = new Map<number, string>();
  const startedAt = performance.now();
  let slowest: EncodeTimings = { tokenizeMs: 0, queueMs: 0, runMs: 0, rowsMs: 0 };
  for await (const document of encoded) {
    context.spent.inputTokens += document.inputTokens;
    assertWanted(context, deps.nowMs());
    const input = documents[document.documentIndex];
    assertInvariant(input !== undefined && !seen.has(document.documentIndex), 'a document is encoded once');
    seen.add(document.documentIndex);
    slowest = slowestOf(slowest, document.timings);
    if (document.chunkRows.length === 0) {
      errors.set(document.documentIndex, document.problem ?? 'the document produced no chunks');
      continue;
    }
    const versionId = versionIds[document.documentIndex];
    assertInvariant(versionId !== undefined, 'every document has a version id');
    const terms = recordTerms(input.metadata, row.matchFields);
    const version = await timed(context, 'append', () =>
      appendDocument(writer, { versionId, input, document, terms }),
    );
    prepared.versions.push(version);
    const { inputTokens, unknownTokens = 0 } = document;
    prepared.inputTokens += inputTokens;
    if (unknownTokens > 0) {
      prepared.unknownTokens.push({ docId: input.docId, unknownTokens, inputTokens });
    }
    prepared.chunks += version.chunkCount;
  }
  const encodeMs = performance.now() - startedAt - context.timings.msOf('append');
  context.timings.note('encode', { within: serviceStage, startedAt, ms: encodeMs });
  context.timings.noteParts('encode', encoderStages(slowest));
  assertInvariant(seen.size === documents.length, 'every document is encoded');
  prepared.failed = documents.flatMap(({ docId }, index) => {
    const error = errors.get(index);
    return error === undefined ? [] : { docId, error };
  });
  return prepared;
}

async function appendDocument(
  writer: IndexWriter,
  { versionId, input, document, terms }: AppendInput,
): Promise<UnplacedVersion> {
  const { chunkRows, vectors, scales, chunkRanges, rowPlaces } = document;
  await writer.append({
    versionId,
    chunkRows,
    vectors,
    scales,
    terms,
    ...(chunkRanges && rowPlaces ? { chunkRanges, rowPlaces } : {}),
  });
  return {
    docId: input.docId,
    versionId,
    metadata: input.metadata,
    chunkCount: chunkRows.length,
    tokenVectors: scales.length,
  };
}

function assertCommitted(outcome: CommitUpsertResult['outcome'], tenant: Tenant, nowMs: number): void {
  if (outcome === 'index_missing') throw missingIndex();
  if (outcome === 'document_allowance_exceeded') throw documentAllowanceExceeded(tenant);
  if (outcome === 'token_allowance_exceeded') throw tokenAllowanceExceeded(tenant, nowMs);
}

/** Refuses a batch that exceeds the allowance of documents before it is encoded. The commit decides for good. */
async function assertRoom(
  deps: OperationDeps,
  context: RequestContext,
  row: IndexRow,
  documents: readonly DocumentInput[],
): Promise<void> {
  const totals = await deps.catalog.usageTotals(context.tenant.id, monthOf(deps.nowMs()));
  const room = context.tenant.limits.documents - totals.documents;
  if (documents.length <= room) return;
  const docIds = documents.map(({ docId }) => docId);
  const added = documents.length - (await deps.catalog.countStored(row.id, docIds));
  if (added > 0 && added > room) throw documentAllowanceExceeded(context.tenant);
}

function documentAllowanceExceeded(tenant: Tenant): ServiceError {
  return invalid(
    'documents',
    `the tenant may store ${tenant.limits.documents} documents, and what is left does not hold this batch. ` +
      `An operator raises the limit with: ${raisingCommand(tenant, 'documents')}`,
    'document_allowance_exceeded',
  );
}

function slowestOf(one: EncodeTimings, other: EncodeTimings): EncodeTimings {
  return {
    tokenizeMs: Math.max(one.tokenizeMs, other.tokenizeMs),
    queueMs: Math.max(one.queueMs, other.queueMs),
    runMs: Math.max(one.runMs, other.runMs),
    rowsMs: Math.max(one.rowsMs, other.rowsMs),
  };
}
