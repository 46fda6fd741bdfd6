/**
 * Answers as JSON text. Customer objects arrive as the text that was stored and are spliced in without being
 * parsed; the rest is small. A test holds these against the schemas.
 */
import type { z } from 'zod';
import { assertInvariant } from '../errors.ts';
import type {
  RankedResponse,
  RequestUsage,
  ResultComponents,
  ResultItem,
  Service,
  UpsertResponse,
  UsageSummary,
} from '../service/contract.ts';
import type { RequestUsage as RequestUsageSchema } from './schemas/fields.ts';
import type { UpsertResult } from './schemas/indexes.ts';
import type { UsageSummary as UsageSummarySchema } from './schemas/usage.ts';

type Index = Awaited<ReturnType<Service['getIndex']>>;

export function indexText(index: Index): string {
  const before = JSON.stringify({
    id: index.id,
    name: index.name,
    model: index.model,
    model_version: index.modelVersion,
    text_retention: 'none',
    chunking: {
      strategy: 'token_window',
      max_tokens: index.chunking.maxTokens,
      overlap_tokens: index.chunking.overlapTokens,
      minimum_chunk_tokens: index.chunking.minimumChunkTokens,
    },
  });
  const after = JSON.stringify({ status: index.status, created_at: timestamp(index.createdAtMs) });
  return `${before.slice(0, -1)},"metadata_schema":${index.metadataSchema},${after.slice(1)}`;
}

export function indexListText(indexes: readonly Index[]): string {
  return `{"data":[${indexes.map(indexText).join(',')}]}`;
}

export function upsertText(response: UpsertResponse): string {
  const body: z.output<typeof UpsertResult> = {
    index_id: response.indexId,
    upserted_documents: response.upsertedDocuments,
    upserted_chunks: response.upsertedChunks,
    failed: response.failed.map(({ docId, error }) => ({ doc_id: docId, error })),
    usage: requestUsage(response.usage),
  };
  return JSON.stringify(body);
}

export function rankedText(response: RankedResponse): string {
  return `{"results":[${response.results.map(resultText).join(',')}],"usage":${JSON.stringify(requestUsage(response.usage))}}`;
}

function resultText(result: ResultItem): string {
  const components =
    result.components === undefined ? '' : `,"components":${componentsText(result.components)}`;
  return (
    `{"doc_id":${JSON.stringify(result.docId)},"chunk_id":${JSON.stringify(result.chunkId)},` +
    `"chunk_index":${result.chunkIndex},"score":${number(result.score)},"metadata":${result.metadata}${components}}`
  );
}

function componentsText(components: ResultComponents): string {
  const { candidateScore, candidateRank } = components;
  return (
    `{"maxsim":${number(components.maxsim)},"per_query_token":[` +
    components.perQueryToken
      .map(
        (token) =>
          `{"token_index":${token.tokenIndex},"document_token_index":${token.documentTokenIndex},"similarity":${number(token.similarity)}}`,
      )
      .join(',') +
    `]${candidateScore === undefined ? '' : `,"candidate_score":${number(candidateScore)}`}` +
    `${candidateRank === undefined ? '' : `,"candidate_rank":${candidateRank}`}}`
  );
}

export function usageText(summary: UsageSummary): string {
  const body: z.output<typeof UsageSummarySchema> = {
    period_start: timestamp(summary.periodStartMs),
    period_end: timestamp(summary.periodEndMs),
    usage: {
      input_tokens: String(summary.usage.inputTokens),
      requests: summary.usage.requests,
      document_upserts: summary.usage.documentUpserts,
      searches: summary.usage.searches,
      scores: summary.usage.scores,
      documents: summary.usage.documents,
    },
    limits: {
      input_tokens: String(summary.limits.inputTokens),
      documents: summary.limits.documents,
      requests_per_minute: summary.limits.requestsPerMinute,
      max_concurrent_requests: summary.limits.maxConcurrentRequests,
    },
    remaining: {
      input_tokens: String(summary.remaining.inputTokens),
      documents: summary.remaining.documents,
    },
  };
  return JSON.stringify(body);
}

function requestUsage(usage: RequestUsage): z.output<typeof RequestUsageSchema> {
  return {
    input_tokens: usage.inputTokens,
    document_count: usage.documentCount,
    chunk_count: usage.chunkCount,
    candidate_count: usage.candidateCount,
    latency_ms: Math.round(usage.latencyMs),
  };
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

function number(value: number): string {
  assertInvariant(Number.isFinite(value), 'a score is not a finite number');
  return String(value);
}
