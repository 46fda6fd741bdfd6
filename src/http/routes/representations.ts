/**
 * Answers as JSON text. A customer's object is kept as the text that was checked at its request (`json-body.ts`), and is
 * inserted without parsing, here alone. A test compares the answers with the schemas.
 */
import { setImmediate } from 'node:timers/promises';
import type { z } from 'zod';
import type { TenantLimits, UsageTotals } from '../../catalog/contract.ts';
import { assertInvariant } from '../../errors.ts';
import type {
  DocumentResult,
  Facets,
  Highlight,
  QueryResponse,
  RankedResponse,
  RequestUsage,
  ResultComponents,
  ResultItem,
  Service,
  TokenVectorPlaces,
  UnknownTokens,
  UpsertResponse,
  UsageSummary,
} from '../../service/contract.ts';
import { unlimitedNames } from '../../service/limits/unlimited.ts';
import type { IndexActivity } from '../recent-activity.ts';
import type { RequestUsage as RequestUsageSchema } from '../schemas/fields.ts';
import { cursorOf, creationPlaceText } from '../schemas/pages.ts';
import type { Recall as RecallSchema, UpsertResult } from '../schemas/indexes.ts';
import type { Components as ComponentsSchema, Passage as PassageSchema } from '../schemas/ranking.ts';
import type { Reranked as RerankedSchema, RerankedTexts as RerankedTextsSchema } from '../schemas/rerank.ts';
import type {
  TenantLimits as TenantLimitsSchema,
  UsageCounts as UsageCountsSchema,
  UsageSummary as UsageSummarySchema,
} from '../schemas/usage.ts';

type MeasuredIndex = Awaited<ReturnType<Service['getIndex']>>;
type Index = Omit<MeasuredIndex, 'recall'>;
type ListedDocuments = Awaited<ReturnType<Service['listDocuments']>>;

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
  const after = JSON.stringify({
    status: index.status,
    created_at: timestamp(index.createdAtMs),
    match_fields: index.matchFields,
  });
  return `${before.slice(0, -1)},"metadata_schema":${index.metadataSchema},${after.slice(1)}`;
}

export function measuredIndexText({ recall, ...index }: MeasuredIndex): string {
  const measured: z.output<typeof RecallSchema> | null = recall
    ? { at_10: recall.at10, at_100: recall.at100, searches: recall.comparisons, breadth: recall.breadth }
    : null;
  return `${indexText(index).slice(0, -1)},"recall":${JSON.stringify(measured)}}`;
}

/** Up to 16 MiB: a thousand indexes with a metadata schema each. `hasMore` is given for a page. */
export function indexListAnswer(indexes: readonly Index[], hasMore?: boolean): Promise<string | Buffer> {
  const last = indexes.at(-1);
  const tail = hasMore === undefined ? '' : nextCursor(hasMore, last && creationPlaceText(last));
  return listed('{"data":[', indexes, indexText, `]${tail}}`);
}

/** Up to 4 MiB of metadata, and the metadata of one document more. */
export function documentListAnswer({ documents, hasMore, hint }: ListedDocuments): Promise<string | Buffer> {
  const tail = `]${nextCursor(hasMore, documents.at(-1)?.docId)}${hintMember(hint)}}`;
  return listed('{"data":[', documents, storedDocumentText, tail);
}

function hintMember(hint: string | undefined): string {
  return hint === undefined ? '' : `,"hint":${JSON.stringify(hint)}`;
}

export function storedDocumentText({
  docId,
  metadata,
  chunkCount,
  expiresAtMs,
}: ListedDocuments['documents'][number]): string {
  const expiry = expiresAtMs === undefined ? '' : `,"expires_at":"${timestamp(expiresAtMs)}"`;
  return `{"doc_id":${JSON.stringify(docId)},"metadata":${metadata},"chunk_count":${chunkCount}${expiry}}`;
}

function nextCursor(hasMore: boolean, last: string | undefined): string {
  return `,"next_cursor":${hasMore && last !== undefined ? JSON.stringify(cursorOf(last)) : null}`;
}

export function upsertText(response: UpsertResponse): string {
  const body: z.output<typeof UpsertResult> = {
    index_id: response.indexId,
    upserted_documents: response.upsertedDocuments,
    upserted_chunks: response.upsertedChunks,
    failed: response.failed.map(({ docId, error }) => ({ doc_id: docId, error })),
    ...(response.unknownTokens.length === 0
      ? {}
      : { unknown_tokens: response.unknownTokens.map(unknownTokensOf) }),
    usage: requestUsage(response.usage),
  };
  return JSON.stringify(body);
}

function unknownTokensOf({ docId, unknownTokens, inputTokens }: UnknownTokens) {
  return { doc_id: docId, unknown_tokens: unknownTokens, input_tokens: inputTokens };
}

/** Up to 6 MiB: a hundred results with their metadata and the components of 512 query tokens. */
export function rankedAnswer(response: RankedResponse): Promise<string | Buffer> {
  return listed('{"results":[', response.results, resultText, rankedTail(response));
}

function rankedTail({ hint, usage }: Pick<RankedResponse, 'hint' | 'usage'>): string {
  return `]${hintMember(hint)},"usage":${JSON.stringify(requestUsage(usage))}}`;
}

export interface Reranking {
  readonly id: string;
  readonly model: string;
  readonly texts: readonly string[];
  readonly returnsTexts: boolean;
  readonly topN: number;
  /** Above 0, only documents with a score have a result. */
  readonly minScore: number;
  /** Which of the matching words a result has, if they are wanted. */
  readonly spans?: { readonly threshold: number; readonly most: number };
  readonly warnings: readonly string[];
}

/**
 * In the shapes of Cohere and Jina. Up to 5 MiB: a thousand texts. Every document has a result, because callers join the scores to
 * their documents by position. A document without a token has no score, so it comes last.
 */
export function rerankAnswer(
  { results, usage }: RankedResponse,
  { id, model, texts, returnsTexts, topN, minScore, spans, warnings }: Reranking,
): Promise<string | Buffer> {
  const tail: Omit<z.output<typeof RerankedSchema>, 'results'> = {
    id,
    model,
    meta: {
      api_version: { version: '2' },
      billed_units: { input_tokens: usage.inputTokens },
      ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    },
    usage: { total_tokens: usage.inputTokens },
  };
  const ranked = everyDocument(results, minScore > 0 ? 0 : texts.length);
  const textOf = ({ index, score, normalized, highlights }: RankedDocument): string =>
    JSON.stringify({
      index,
      relevance_score: score,
      normalized_score: normalized,
      ...(returnsTexts && { document: { text: texts[index] } }),
      ...(spans && { relevant_spans: relevantSpans(highlights, spans) }),
    });
  return listed('{"results":[', ranked.slice(0, topN), textOf, `],${JSON.stringify(tail).slice(1)}`);
}

/** The most similar words first. */
function relevantSpans(
  highlights: readonly Highlight[],
  { threshold, most }: NonNullable<Reranking['spans']>,
) {
  return highlights
    .map(({ start, end, similarity }) => ({ start, end, score: Math.min(1, similarity) }))
    .filter(({ score }) => score >= threshold)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, most);
}

/** In the shape of TEI: a list alone. */
export function rerankTextsAnswer(
  { results }: RankedResponse,
  {
    texts,
    topN,
    isRaw,
    returnsTexts,
  }: {
    readonly texts: readonly string[];
    readonly topN: number;
    readonly isRaw: boolean;
    readonly returnsTexts: boolean;
  },
): Promise<string | Buffer> {
  const textOf = ({ index, score, normalized }: RankedDocument): string => {
    const text = returnsTexts ? { text: texts[index] } : {};
    const one: z.output<typeof RerankedTextsSchema>[number] = {
      index,
      score: isRaw ? score : normalized,
      ...text,
    };
    return JSON.stringify(one);
  };
  return listed('[', everyDocument(results, texts.length).slice(0, topN), textOf, ']');
}

interface RankedDocument {
  readonly index: number;
  readonly score: number;
  readonly normalized: number;
  readonly highlights: readonly Highlight[];
}

/** The documents with a score, best first, then those of the first `count` that have none. */
function everyDocument(results: readonly ResultItem[], count: number): RankedDocument[] {
  const ranked = results.map(({ docId, score, normalizedScore: normalized, passage }) => ({
    index: Number(docId),
    score,
    normalized,
    highlights: passage?.highlights ?? [],
  }));
  const scored = new Set(ranked.map(({ index }) => index));
  const lowest = ranked.reduce((least, { score }) => Math.min(least, score), 0);
  for (let index = 0; index < count; index++)
    if (!scored.has(index)) ranked.push({ index, score: lowest, normalized: 0, highlights: [] });
  return ranked;
}

/** Up to 16 MiB: five hundred results with their metadata. */
export function queryAnswer(response: QueryResponse): Promise<string | Buffer> {
  return joined(queryPieces(response));
}

function* queryPieces({ results, usage }: QueryResponse): Generator<string> {
  yield '{"results":[';
  for (const [place, answer] of results.entries()) {
    const head = `${place === 0 ? '' : ','}{"results":[`;
    const tail = rankedTail(answer);
    if ('documents' in answer) yield* listPieces(head, answer.documents, documentText, tail);
    else yield* listPieces(head, answer.results, resultText, tail);
  }
  yield `],"usage":${JSON.stringify(requestUsage(usage))}}`;
}

function listed<Item>(
  head: string,
  items: readonly Item[],
  textOf: (item: Item) => string,
  tail: string,
): Promise<string | Buffer> {
  return joined(listPieces(head, items, textOf, tail));
}

function* listPieces<Item>(
  head: string,
  items: readonly Item[],
  textOf: (item: Item) => string,
  tail: string,
): Generator<string> {
  yield head;
  for (const [place, item] of items.entries()) yield `${place === 0 ? '' : ','}${textOf(item)}`;
  yield tail;
}

/** Other requests have their turn after each slice of an answer. */
const sliceCharacters = 64 * 1024;

/** Makes a long answer in slices. The whole at once would hold up the event loop. */
async function joined(pieces: Iterable<string>): Promise<string | Buffer> {
  const slices: Buffer[] = [];
  let text = '';
  for (const piece of pieces) {
    text += piece;
    if (text.length < sliceCharacters) continue;
    slices.push(Buffer.from(text));
    text = '';
    await setImmediate();
  }
  // Node sends a string in one piece with the headers.
  return slices.length === 0 ? text : Buffer.concat([...slices, Buffer.from(text)]);
}

function resultText(result: ResultItem): string {
  return `{"doc_id":${JSON.stringify(result.docId)},${chunkFields(result)},"metadata":${result.metadata}${detailFields(result)}${chunksField(result)}}`;
}

function documentText(document: DocumentResult): string {
  const { docId, metadata, chunks } = document;
  const best = chunks[0]?.score ?? 0;
  const normalized = chunks[0]?.normalizedScore ?? 0;
  return `{"doc_id":${JSON.stringify(docId)},"score":${number(best)},"normalized_score":${number(normalized)},"metadata":${metadata}${chunksField(document)}}`;
}

function chunksField({ chunks }: Pick<ResultItem, 'chunks'>): string {
  if (chunks === undefined) return '';
  const texts = chunks.map((chunk) => `{${chunkFields(chunk)}${detailFields(chunk)}}`);
  return `,"chunks":[${texts.join(',')}]`;
}

function chunkFields({ chunkId, chunkIndex, score, normalizedScore, textRange }: ResultItem): string {
  const range = textRange === undefined ? '' : `,"text_range":${JSON.stringify(textRange)}`;
  return `"chunk_id":${JSON.stringify(chunkId)},"chunk_index":${chunkIndex},"score":${number(score)},"normalized_score":${number(normalizedScore)}${range}`;
}

function detailFields({ components, passage }: ResultItem): string {
  const detail = components === undefined ? '' : `,"components":${componentsText(components)}`;
  return passage === undefined ? detail : `${detail},"passage":${passageText(passage)}`;
}

/** Up to 4,096 code points, and the words of 512 query tokens. */
function passageText(passage: NonNullable<ResultItem['passage']> | null): string {
  if (passage === null) return 'null';
  const { text, start, end, highlights } = passage;
  const body: z.output<typeof PassageSchema> = {
    text,
    start,
    end,
    ...(highlights === undefined
      ? {}
      : { highlights: highlights.map(({ queryWord, ...word }) => ({ ...word, query_word: queryWord })) }),
  };
  return JSON.stringify(body);
}

/** Up to 51,200 query tokens an answer. One call of the serialiser takes half as long as a call for each token. */
function componentsText(components: ResultComponents): string {
  const { maxsim, similarities, documentTokens, places, candidateScore, candidateRank, matches } = components;
  const body: z.output<typeof ComponentsSchema> = {
    maxsim,
    per_query_token: Array.from(similarities, (similarity, tokenIndex) => ({
      token_index: tokenIndex,
      document_token_index: documentTokens[tokenIndex] ?? 0,
      // A token without weight matches everything alike.
      ...(similarity === 0 ? {} : rangesOf(places[tokenIndex])),
      similarity,
    })),
    candidate_score: candidateScore,
    candidate_rank: candidateRank,
    matches: matches && [...matches],
  };
  return JSON.stringify(body);
}

/** A token vector that stands for a special token and one token of the text has the range of the latter. */
function rangesOf(
  places: TokenVectorPlaces | undefined,
): Partial<z.output<typeof ComponentsSchema>['per_query_token'][number]> {
  if (places === undefined) return {};
  const { place, all } = places;
  return all.length > 1 ? { text_range: place, text_ranges: [...all] } : { text_range: place ?? all[0] };
}

/** Up to 16 MiB: a hundred long values of ten fields. */
export function facetsAnswer(facets: Facets): Promise<string | Buffer> {
  return joined(facetPieces(facets));
}

function* facetPieces({ documents, facets, hint }: Facets): Generator<string> {
  yield `{"documents":${documents},"facets":[`;
  for (const [place, { field, distinct, values }] of facets.entries()) {
    const head = `${place === 0 ? '' : ','}{"field":${JSON.stringify(field)},"distinct":${distinct},"values":[`;
    yield* listPieces(head, values, ({ value, count }) => `{"value":${value},"count":${count}}`, ']}');
  }
  yield `]${hintMember(hint)}}`;
}

/** Up to 5 MiB: a thousand indexes. `head` is the answer up to its list. */
export function activityAnswer(
  head: string,
  indexes: readonly (readonly [id: string, activity: IndexActivity])[],
): Promise<string | Buffer> {
  const textOf = ([id, activity]: (typeof indexes)[number]): string =>
    JSON.stringify({ index_id: id, ...activity });
  return listed(`${head},"data":[`, indexes, textOf, ']}');
}

export function usageText(summary: UsageSummary): string {
  const body: z.output<typeof UsageSummarySchema> = {
    period_start: timestamp(summary.periodStartMs),
    period_end: timestamp(summary.periodEndMs),
    usage: usageCountsBody(summary.usage),
    limits: limitsBody(summary.limits),
    remaining: {
      input_tokens: String(summary.remaining.inputTokens),
      documents: summary.remaining.documents,
    },
    unlimited: unlimitedNames(summary.limits),
    tenant: summary.tenant,
  };
  return JSON.stringify(body);
}

export function usageCountsBody(usage: UsageTotals): z.output<typeof UsageCountsSchema> {
  return {
    input_tokens: String(usage.inputTokens),
    requests: usage.requests,
    document_upserts: usage.documentUpserts,
    searches: usage.searches,
    scores: usage.scores,
    documents: usage.documents,
  };
}

export function limitsBody(limits: TenantLimits): z.output<typeof TenantLimitsSchema> {
  return {
    input_tokens: String(limits.inputTokens),
    documents: limits.documents,
    requests_per_minute: limits.requestsPerMinute,
    max_concurrent_requests: limits.maxConcurrentRequests,
  };
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

export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

function number(value: number): string {
  assertInvariant(Number.isFinite(value), 'a score is not a finite number');
  return String(value);
}
