/**
 * Re-rank requests and their answers, in the shapes that programs for Cohere, Jina, vLLM and Text Embeddings Inference (TEI) send
 * and read. They send null for "absent".
 */
import { z } from 'zod';
import { defaultModelAlias, rerankedTokensDefault, rerankedTokensMax } from '../../service/contract.ts';
import { documentsMax, rerankedDocumentsMax, textBytesMax } from '../limits.ts';
import { addIssue, Count, FieldNames, Name, Query } from './fields.ts';
import { MinScore, NormalizedScore } from './ranking.ts';

/** Fields of these programs that change nothing here. `meta.warnings` names those of a request. */
export const ignoredFields = [
  'additional_data',
  'encoding_format',
  'max_chunks_per_doc',
  'max_doc_length',
  'max_query_length',
  'overlap_tokens',
  'prompt_name',
  'raw_scores',
  'return_embeddings',
  'return_text',
  'truncate',
  'truncate_prompt_tokens',
  'truncation',
  'truncation_direction',
  'use_activation',
  'user',
] as const;

/** Fields of TEI that change nothing here. Its answers have no place for a warning. */
const ignoredFieldsOfTexts = ['truncate', 'truncation_direction', 'prompt_name'] as const;

/** A document without `rank_fields` has its text here. */
const usualField = 'text';

const cutting = `At most ${textBytesMax} bytes as UTF-8 of a text count, and at most \`max_tokens_per_doc\` tokens. A text may be empty.`;

const RankedText = z.string().overwrite((text) => text.toWellFormed());
const RankedObject = z
  .record(z.string(), z.unknown())
  .meta({ description: 'An object with the text in `text`, or in the `rank_fields`.' });

const Documents = z
  .array(z.union([RankedText, RankedObject], { error: 'must be a string or an object' }))
  .min(1)
  .max(rerankedDocumentsMax)
  .meta({ description: `Texts, or objects with texts. ${cutting}` });

const TopN = z.int().min(1).optional();

const RankingModel = Name.optional().meta({
  description: `Name of a model, as for an index, one that the operator has given it, or \`${defaultModelAlias}\`: the default model. Default: the default model.`,
  example: defaultModelAlias,
});

const RelevantSpans = z
  .strictObject({
    mode: z.enum(['enabled', 'disabled']),
    threshold: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .meta({ description: 'Similarity that a word has at least. Default 0.1.' }),
    max_spans: z.int().min(0).optional().meta({ description: 'Words of a document at most. Default: all.' }),
  })
  .meta({
    id: 'RerankRelevantSpansOptions',
    description: `Adds the words of each document that match the query, the most similar first. For at most ${documentsMax} documents; for more it is ignored.`,
  });

function ignored<Names extends readonly string[]>(names: Names): Record<Names[number], z.ZodOptional> {
  const one = z.unknown().optional().meta({ description: 'Ignored.' });
  return Object.fromEntries(names.map((name) => [name, one])) as Record<Names[number], typeof one>;
}

export const RerankBody = z
  .strictObject({
    model: RankingModel,
    query: Query,
    documents: Documents,
    rank_fields: FieldNames.optional().meta({
      description:
        'Fields of the documents that are objects. Their strings are joined by line ends in this order. A missing field counts as empty. Default: `text`.',
    }),
    top_n: TopN.meta({ description: 'Results at most. Default: all.' }),
    top_k: TopN.meta({ description: 'The same. The lower of the two counts.' }),
    return_documents: z
      .boolean()
      .optional()
      .meta({ description: 'Adds its text to each result. Default false.' }),
    max_tokens_per_doc: z
      .int()
      .min(1)
      .optional()
      .meta({
        description: `Longer documents are cut after so many tokens. All documents together may have ${rerankedTokensMax} tokens after that, where every encoder of the model runs on a GPU ten times as many. Default: ${rerankedTokensDefault}, or less if the list would not fit otherwise; \`meta.warnings\` says so.`,
      }),
    relevant_spans: RelevantSpans.optional(),
    min_score: MinScore.optional(),
    score_threshold: z
      .number()
      .optional()
      .meta({ description: 'The same as `min_score`. The higher of the two counts.' }),
    priority: z
      .literal(0, { error: 'must be 0: no request goes before others' })
      .optional()
      .meta({ description: 'Only 0, because no request goes before others.' }),
    ...ignored(ignoredFields),
  })
  .superRefine(({ documents, rank_fields: fields }, context) => {
    for (const [at, document] of documents.entries()) {
      if (typeof document === 'string') continue;
      if (!fields?.length && typeof document[usualField] !== 'string') {
        const message = 'must be a string or an object with a `text`, or come with `rank_fields`';
        addIssue(context, 'invalid_type', message, ['documents', at]);
      }
      for (const field of fields ?? []) {
        if (['string', 'undefined'].includes(typeof document[field])) continue;
        addIssue(context, 'invalid_type', 'must be a string', ['documents', at, field]);
      }
    }
  })
  .meta({ id: 'Rerank' });

export type RankedDocument = z.output<typeof Documents>[number];

/** The text of a document, by the fields that the request names. */
export function textOf(document: RankedDocument, fields: readonly string[] = []): string {
  if (typeof document === 'string') return document;
  const texts = (fields.length === 0 ? [usualField] : fields)
    .map((field) => document[field])
    .filter((text) => typeof text === 'string');
  return texts.join('\n').toWellFormed();
}

export const RerankTextsBody = z
  .strictObject({
    model: RankingModel,
    query: Query,
    texts: z
      .array(RankedText)
      .min(1)
      .max(rerankedDocumentsMax)
      .meta({ description: `Texts. ${cutting}` }),
    top_n: TopN.meta({ description: 'Results at most. Default: all.' }),
    raw_scores: z.boolean().optional().meta({
      description: 'The score of a text is its MaxSim instead of `normalized_score`. Default false.',
    }),
    return_text: z.boolean().optional().meta({ description: 'Adds its text to each result. Default false.' }),
    ...ignored(ignoredFieldsOfTexts),
  })
  .meta({ id: 'RerankTexts', description: 'As TEI has it.' });

/** The shape of the request decides about the shape of the answer. */
export const AnyRerankBody = z.union([RerankBody, RerankTextsBody]);

export function hasTexts(body: unknown): body is z.input<typeof RerankTextsBody> {
  return typeof body === 'object' && body !== null && 'texts' in body && !('documents' in body);
}

const RerankedDocument = z.strictObject({ text: z.string() }).meta({ id: 'RerankedDocument' });

const RelevantSpan = z
  .strictObject({
    start: Count.meta({ description: 'First Unicode code point of the word in the text.' }),
    end: Count.meta({ description: 'The code point behind it.' }),
    score: z.number().min(0).max(1).meta({ description: 'The greatest similarity of a token of the query.' }),
  })
  .meta({ id: 'RerankRelevantSpan', description: 'As Cohere has it.' });

const RerankResult = z
  .strictObject({
    index: z.int().min(0).meta({ description: 'Position of the document in the request.' }),
    relevance_score: z.number().meta({
      description:
        'Orders the documents of one query by one model. It is no probability, and has no fixed range.',
    }),
    normalized_score: NormalizedScore,
    document: RerankedDocument.optional(),
    relevant_spans: z.array(RelevantSpan).optional(),
  })
  .meta({ id: 'RerankResult' });

const RerankVersion = z.strictObject({ version: z.string() }).meta({ id: 'RerankVersion' });
const RerankBilled = z.strictObject({ input_tokens: Count }).meta({ id: 'RerankBilled' });
const RerankMeta = z
  .strictObject({
    api_version: RerankVersion,
    billed_units: RerankBilled,
    warnings: z
      .array(z.string())
      .optional()
      .meta({ description: 'For people: which documents were cut, and which fields were ignored.' }),
  })
  .meta({ id: 'RerankMeta', description: 'As Cohere has it.' });
const RerankUsage = z
  .strictObject({ total_tokens: Count })
  .meta({ id: 'RerankUsage', description: 'As Jina has it.' });

export const Reranked = z
  .strictObject({
    results: z.array(RerankResult).meta({
      description:
        'Best first. Of equal scores the document that was sent first comes first. A document without a token comes last, with the lowest score of the list, or 0 if that is above 0.',
    }),
    id: z.string().meta({ description: 'The `x-request-id`.' }),
    model: z.string().meta({ description: 'As it was sent.' }),
    meta: RerankMeta,
    usage: RerankUsage,
  })
  .meta({ id: 'Reranked' });

export const RerankedTexts = z
  .array(
    z
      .strictObject({
        index: z.int().min(0).meta({ description: 'Position of the text in the request.' }),
        score: z.number().meta({ description: '`normalized_score`, or MaxSim with `raw_scores`.' }),
        text: z.string().optional(),
      })
      .meta({ id: 'RerankedText' }),
  )
  .meta({ id: 'RerankedTexts', description: 'As TEI has it. Best first.' });

/** The answer has the shape of the request. */
export const AnyReranked = z.union([Reranked, RerankedTexts]);
