/**
 * Searching an index: encode the query, ask the engine on a pinned snapshot, read what belongs to the
 * results, charge, answer. The charge is in the ledger before the answer leaves; a search that fails before
 * it is not charged.
 */
import type { ResolvedVersion } from '../../catalog/contract.ts';
import type { EncodedQuery, EncoderModel } from '../../encoder/protocol/contract.ts';
import { ServiceError, assertInvariant } from '../../errors.ts';
import { metadataTerms } from '../../index/terms/metadata-terms.ts';
import type { NativeSearchResult } from '../../index/engine/native.ts';
import { candidateKMax, topKDefault } from '../contract.ts';
import type { RankedResponse, RequestContext, ResultItem, SearchRequest } from '../contract.ts';
import {
  assertWanted,
  encodedQuery,
  encodeOptions,
  encoderStages,
  requestUsage,
  timed,
  type ServiceParts,
} from '../parts.ts';
import { componentsOf } from './ranking.ts';
import { modelOfIndex } from '../indexes/served-models.ts';
import type { TokenHold } from '../limits/token-allowance.ts';

/** A filter that every document passes. */
const noFields = '{}';
const candidateKMin = 200;
const unknownVersionRetrySeconds = 30;
/** Above this much room a query's tokens are reserved by its bytes; below, counted first. */
const cheapReservationRoom = 1_000_000n;

export async function searchIndex(
  parts: ServiceParts,
  context: RequestContext,
  indexId: string,
  request: SearchRequest,
): Promise<RankedResponse> {
  const row = await timed(context, 'index', () => parts.indexes.usableRow(context.tenant.id, indexId));
  const head = parts.indexes.head(row.id);
  const model = await modelOfIndex(parts.encoder, row, context);
  const hold = await parts.allowance.open(context.tenant);
  try {
    const query = await encodeQuery(parts, context, { model, hold, text: request.query });
    assertWanted(context, parts.nowMs());
    const found = await parts.indexes.use(
      row,
      (stored) =>
        stored.read(async (reader) => {
          const result = await timed(context, 'engine', () =>
            reader.search({
              query: query.vectors,
              offsets: query.offsets,
              ...breadthOf(request),
              ...(request.filter === undefined || request.filter === noFields
                ? {}
                : { filterTerms: metadataTerms(request.filter) }),
              components: request.returnComponents,
              timeoutMs: Math.max(1, context.deadlineMs - parts.nowMs()),
            }),
          );
          noteEngineTimings(context, result);
          const versions = await timed(context, 'resolve', () =>
            parts.versions.resolve(row.id, [...new Set(result.versionIds)]),
          );
          // What a pinned snapshot refers to is gone only when the whole index is.
          const unknown = [...result.versionIds].find((id) => !versions.has(id));
          if (unknown !== undefined) {
            await parts.indexes.assertExists(context.tenant.id, indexId);
            throw unknownVersion(unknown);
          }
          return { result, versions };
        }, head),
      model,
    );
    const results = resultItems(found.result, found.versions, query.rows);
    assertWanted(context, parts.nowMs());
    await timed(context, 'usage', () =>
      parts.usage.record(context, {
        month: hold.month,
        inputTokens: BigInt(query.inputTokens),
        searches: 1,
      }),
    );
    hold.settle(BigInt(query.inputTokens));
    return {
      results,
      usage: requestUsage(context, parts.nowMs(), {
        inputTokens: query.inputTokens,
        documentCount: 0,
        chunkCount: results.length,
        candidateCount: found.result.candidateCount,
      }),
    };
  } finally {
    hold.release();
  }
}

/** `top_k` and `candidate_k` with their defaults; candidates are never fewer than results. */
export function breadthOf(request: Pick<SearchRequest, 'topK' | 'candidateK'>): {
  readonly topK: number;
  readonly candidateK: number;
} {
  const topK = request.topK ?? topKDefault;
  const candidateK = request.candidateK ?? Math.min(candidateKMax, Math.max(candidateKMin, 5 * topK));
  return { topK, candidateK: Math.max(topK, candidateK) };
}

/**
 * Encodes a query with its tokens reserved first. No text has more tokens than bytes, so with room to spare
 * its bytes are reserved without counting; near the end of the allowance the tokens are counted, so that
 * only a request that really exceeds it is refused.
 */
async function encodeQuery(
  parts: ServiceParts,
  context: RequestContext,
  { model, hold, text }: { readonly model: EncoderModel; readonly hold: TokenHold; readonly text: string },
): Promise<EncodedQuery> {
  const options = encodeOptions(context, model);
  const bytes = BigInt(Buffer.byteLength(text));
  if (hold.remaining < bytes + cheapReservationRoom || !hold.tryReserve(bytes)) {
    const [tokens = 0] = await timed(context, 'count', () => parts.encoder.countTokens([text], options));
    hold.reserve(BigInt(tokens));
  }
  const query = await timed(context, 'encode', () => encodedQuery(parts, text, options));
  context.timings.noteParts('encode', encoderStages(query.timings));
  // A tokenizer whose normalisation makes characters could exceed the bytes: then the rest is reserved now.
  if (BigInt(query.inputTokens) > hold.reserved) hold.reserve(BigInt(query.inputTokens) - hold.reserved);
  return query;
}

function resultItems(
  found: NativeSearchResult,
  versions: ReadonlyMap<number, ResolvedVersion>,
  queryRows: number,
): ResultItem[] {
  const items: ResultItem[] = [];
  for (const [position, versionId] of found.versionIds.entries()) {
    const version = versions.get(versionId);
    assertInvariant(version !== undefined, 'every result was resolved');
    const chunkIndex = found.chunkIndexes[position] ?? 0;
    const score = found.scores[position] ?? 0;
    const components = componentsOf({ ...found, score, position, queryRows });
    items.push({
      docId: version.docId,
      chunkId: chunkIdOf(versionId, chunkIndex),
      chunkIndex,
      score,
      metadata: version.metadata,
      ...(components === undefined ? {} : { components }),
    });
  }
  return items;
}

/** A shorter answer would be a wrong one. */
function unknownVersion(versionId: number): ServiceError {
  return new ServiceError('service_unavailable', 'a document that was found cannot be read', {
    retryAfterSeconds: unknownVersionRetrySeconds,
    cause: new Error(`the catalog does not hold document version ${versionId}, which the index does`),
  });
}

/** Version ids are never reused, so a chunk's id is its own until its document is replaced. */
function chunkIdOf(versionId: number, chunkIndex: number): string {
  return `${versionId.toString(36)}-${chunkIndex.toString(36)}`;
}

function noteEngineTimings(context: RequestContext, { timings }: NativeSearchResult): void {
  context.timings.noteParts('engine', {
    engine_queue: timings.queueMs,
    engine_filter: timings.filterMs,
    engine_candidates: timings.candidatesMs,
    engine_exact: timings.exactMs,
  });
}
