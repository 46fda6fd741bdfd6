/**
 * The wire format, written from the interface specification alone (nothing here comes from the server's
 * code). Objects are strict: a field that neither the specification nor our decisions name is a failure.
 */
import { z } from 'zod';

const count = z.int().min(0);
/** ISO 8601, UTC. */
const timestamp = z.iso.datetime({ offset: false });
export const decimalString = z.string().regex(/^(0|[1-9][0-9]*)$/);
const customerObject = z.record(z.string(), z.unknown());

const share = z.number().min(0).max(1);
const estimate = z.strictObject({ mean: share, low: share, high: share });

export const index = z.strictObject({
  id: z.uuid(),
  name: z.string().min(1),
  model: z.string().min(1),
  model_version: z.string().min(1),
  text_retention: z.literal('none'),
  chunking: z.strictObject({
    strategy: z.literal('token_window'),
    max_tokens: z.int(),
    overlap_tokens: z.int(),
    minimum_chunk_tokens: z.int(),
  }),
  metadata_schema: customerObject,
  status: z.enum(['creating', 'ready', 'error']),
  created_at: timestamp,
  match_fields: z.array(z.string()).max(8),
  /** Present only in the answer for one index. */
  recall: z
    .strictObject({
      at_10: estimate,
      at_100: estimate,
      searches: z.int().min(1),
      breadth: z.number().min(0.25).max(4),
    })
    .nullable()
    .optional(),
});
export type Index = z.output<typeof index>;

export const indexList = z.strictObject({ data: z.array(index) });

const nextCursor = z.string().min(1).nullable();
export const indexPage = z.strictObject({ data: z.array(index), next_cursor: nextCursor });

export const storedDocument = z.strictObject({
  doc_id: z.string(),
  metadata: customerObject,
  chunk_count: z.int().min(1),
  expires_at: timestamp.optional(),
});
export type StoredDocument = z.output<typeof storedDocument>;

const hint = z.string().min(1).optional();
export const documentPage = z.strictObject({ data: z.array(storedDocument), next_cursor: nextCursor, hint });
export const documentCount = z.strictObject({ documents: count, chunks: count });

export interface DocumentInput {
  readonly doc_id: string;
  readonly text: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

const requestUsage = z.strictObject({
  input_tokens: count,
  document_count: count,
  chunk_count: count,
  candidate_count: count,
  latency_ms: count,
});

export const upserted = z.strictObject({
  index_id: z.uuid(),
  upserted_documents: count,
  upserted_chunks: count,
  failed: z.array(z.strictObject({ doc_id: z.string(), error: z.string() })),
  unknown_tokens: z
    .array(z.strictObject({ doc_id: z.string(), unknown_tokens: count, input_tokens: count }))
    .min(1)
    .optional(),
  usage: requestUsage,
});
export type Upserted = z.output<typeof upserted>;

/** Absent for documents of earlier releases, and if the place of the chunk in its text is unknown. */
const textRange = z.strictObject({ start: count, end: count }).optional();

const components = z.strictObject({
  maxsim: z.number(),
  per_query_token: z.array(
    z.strictObject({
      token_index: count,
      document_token_index: count,
      similarity: z.number(),
      text_range: textRange,
      text_ranges: z.array(textRange.unwrap()).optional(),
    }),
  ),
  candidate_score: z.number().optional(),
  candidate_rank: count.optional(),
  /** An addition of ours. */
  matches: z
    .array(
      z.strictObject({
        field: z.string(),
        value: z.string(),
        start: count,
        end: z.int().min(1),
        bonus: z.number().positive(),
      }),
    )
    .optional(),
});

export const resultItem = z.strictObject({
  doc_id: z.string(),
  chunk_id: z.string().min(1),
  chunk_index: count,
  text_range: textRange,
  score: z.number(),
  normalized_score: share,
  metadata: customerObject,
});
export type ResultItem = z.output<typeof resultItem>;

export const ranked = z.strictObject({ results: z.array(resultItem), hint, usage: requestUsage });
export type Ranked = z.output<typeof ranked>;

export const rankedWithComponents = z.strictObject({
  results: z.array(z.strictObject({ ...resultItem.shape, components })),
  usage: requestUsage,
});

export const reranked = z.strictObject({
  results: z.array(
    z.strictObject({
      index: count,
      relevance_score: z.number(),
      normalized_score: share,
      document: z.strictObject({ text: z.string() }).optional(),
    }),
  ),
  id: z.string().min(1),
  model: z.string(),
  meta: z.strictObject({
    api_version: z.strictObject({ version: z.literal('2') }),
    billed_units: z.strictObject({ input_tokens: count }),
    warnings: z.array(z.string().min(1)).min(1).optional(),
  }),
  usage: z.strictObject({ total_tokens: count }),
});
export type Reranked = z.output<typeof reranked>;

const place = { start: count, end: z.int().min(1) };
/** An addition of ours. */
const passage = z
  .strictObject({
    text: z.string(),
    ...place,
    highlights: z
      .array(z.strictObject({ text: z.string(), ...place, similarity: z.number(), query_word: z.string() }))
      .optional(),
  })
  .nullable()
  .optional();
const details = { components: components.optional(), passage };

const chunks = z
  .array(
    z.strictObject({
      chunk_id: resultItem.shape.chunk_id,
      chunk_index: count,
      text_range: textRange,
      score: z.number(),
      normalized_score: share,
      ...details,
    }),
  )
  .min(1);

/** The answer to a search that asks for passages, or to such a score. */
export const rankedWithPassages = z.strictObject({
  results: z.array(z.strictObject({ ...resultItem.shape, ...details, passage: passage.unwrap() })),
  hint,
  usage: requestUsage,
});

/** The answer to a grouped search. */
export const rankedByDocument = z.strictObject({
  results: z.array(z.strictObject({ ...resultItem.shape, ...details, chunks })),
  hint,
  usage: requestUsage,
});

const queryResult = z.union([
  z.strictObject({ ...resultItem.shape, ...details }),
  z.strictObject({
    doc_id: z.string(),
    score: z.number(),
    normalized_score: share,
    metadata: resultItem.shape.metadata,
    chunks,
  }),
]);

/** Answers to several queries. */
export const queried = z.strictObject({
  results: z.array(z.strictObject({ results: z.array(queryResult), hint, usage: requestUsage })),
  usage: requestUsage,
});
export type Queried = z.output<typeof queried>;

export const deleted = z.strictObject({ deleted: z.boolean() });

export const deletedDocuments = z.strictObject({
  deleted: count,
  more: z.boolean(),
  matching: count.optional(),
  hint,
});

export const facets = z.strictObject({
  documents: count,
  facets: z.array(
    z.strictObject({
      field: z.string(),
      distinct: count,
      values: z.array(z.strictObject({ value: z.unknown(), count })),
    }),
  ),
  hint,
});

export const usageSummary = z.strictObject({
  period_start: timestamp,
  period_end: timestamp,
  usage: z.strictObject({
    input_tokens: decimalString,
    requests: count,
    document_upserts: count,
    searches: count,
    scores: count,
    documents: count,
  }),
  limits: z.strictObject({
    input_tokens: decimalString,
    documents: count,
    requests_per_minute: count,
    max_concurrent_requests: count,
  }),
  remaining: z.strictObject({ input_tokens: decimalString, documents: count }),
  unlimited: z.array(z.enum(['input_tokens', 'documents'])),
  tenant: z.string(),
});
export type UsageSummary = z.output<typeof usageSummary>;

export const errorBody = z.strictObject({
  error: z.strictObject({
    code: z.string(),
    message: z.string().min(1),
    issues: z
      .array(z.strictObject({ path: z.string(), message: z.string().min(1), code: z.string().min(1) }))
      .optional(),
  }),
  /** Only from the re-rank routes, for programs that read the errors of other services. */
  detail: z.string().optional(),
  message: z.string().optional(),
  error_type: z.string().optional(),
});
export type ErrorBody = z.output<typeof errorBody>;
