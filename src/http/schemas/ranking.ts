import { z } from 'zod';
import { candidateKMax, chunksOfDocumentMax, topKDefault } from '../../service/contract.ts';
import { filterFieldsMax, queriesMax, queryComponentsMax, queryResultsMax, topKMax } from '../limits.ts';
import { Documents, Query, RequestUsage, addIssue, customerObject, returnedObject } from './fields.ts';

const ReturnComponents = z
  .boolean()
  .optional()
  .meta({ description: 'Adds diagnostic component scores to each result. Default false.' });

const TopK = z
  .int()
  .min(1)
  .max(topKMax)
  .optional()
  .meta({ description: `Maximum results returned. Default ${topKDefault}.` });

const CandidateK = z.int().min(1).max(candidateKMax).optional().meta({
  description:
    'Chunks scored exactly. Default min(500, max(200, 5 x `top_k`)); below `top_k` it is raised to it.',
});

export const Filter = customerObject(
  'Exact matches against top-level metadata fields, all of which must hold; at most 16 fields. Values compare as JSON: 1 equals 1.0, null is not a missing field, objects compare without regard to key order. Not an authorization boundary.',
)
  .superRefine(({ members }, context) => {
    if (members > filterFieldsMax) {
      addIssue(context, 'too_big', `must have at most ${filterFieldsMax} fields`);
    }
  })
  .optional();

export const Where = customerObject(
  'Conditions on top-level metadata fields, all of which must hold. Of a field: a value that it must equal, as in `filter`; or an object of operators: `in` (any of these values), `not` (a value or operators that must not hold; a missing field passes), `gt`, `gte`, `lt`, `lte` (numbers by their exact value, strings by their code points, of at most 256 bytes). `any_of`: objects like this one, of which one must hold. At most 256 values, and three `any_of` within each other. Not an authorization boundary.',
).optional();

export const SearchBody = z
  .strictObject({
    query: Query,
    top_k: TopK,
    candidate_k: CandidateK,
    filter: Filter,
    return_components: ReturnComponents,
  })
  .meta({ id: 'Search' });

const QueryItem = z
  .strictObject({
    query: Query,
    top_k: TopK,
    candidate_k: CandidateK,
    filter: Filter,
    where: Where,
    return_components: ReturnComponents,
    group_by_document: z.boolean().optional().meta({
      description:
        'Results are documents, ranked by their best chunks, each with up to ten of its chunks. Default false.',
    }),
  })
  .meta({ id: 'QueryItem' });

export const QueryBody = z
  .strictObject({
    queries: z
      .array(QueryItem)
      .min(1)
      .max(queriesMax)
      .superRefine((queries, context) => {
        const resultsOf = ({ top_k: topK }: (typeof queries)[number]): number => topK ?? topKDefault;
        const rowsOf = (query: (typeof queries)[number]): number =>
          resultsOf(query) * (query.group_by_document === true ? chunksOfDocumentMax : 1);
        const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);
        if (sumOf(queries.map(resultsOf)) > queryResultsMax) {
          addIssue(context, 'too_big', `must ask for at most ${queryResultsMax} results together`);
        }
        const detailed = queries.filter((query) => query.return_components === true);
        if (sumOf(detailed.map(rowsOf)) > queryComponentsMax) {
          addIssue(context, 'too_big', `must ask for the components of at most ${queryComponentsMax} chunks`);
        }
      })
      .meta({
        description: `Searches of this index, at most ${queriesMax}: at most ${queryResultsMax} results together, and components of ${queryComponentsMax} chunks (\`top_k\`, ten times that of a grouped one). Each counts as a search.`,
      }),
  })
  .meta({ id: 'Query' });

export const ScoreBody = z
  .strictObject({ query: Query, documents: Documents, return_components: ReturnComponents })
  .meta({ id: 'Score' });

const TokenMatch = z
  .strictObject({
    token_index: z.int().min(0),
    document_token_index: z.int().min(0),
    similarity: z.number(),
  })
  .meta({ id: 'TokenMatch', description: 'A query token and the document token most similar to it.' });

export const Components = z
  .strictObject({
    maxsim: z.number().meta({ description: 'Sum over query tokens of the best similarity.' }),
    per_query_token: z.array(TokenMatch),
    candidate_score: z.number().optional().meta({ description: 'Score in candidate generation.' }),
    candidate_rank: z.int().min(0).optional(),
  })
  .meta({ id: 'Components' });

const RankedResult = z
  .strictObject({
    doc_id: z.string(),
    chunk_id: z.string().meta({
      description:
        'Opaque; unique in the index and stable until the document or its metadata is replaced. `transient_<integer>` for `/v1/score`.',
    }),
    chunk_index: z.int().min(0),
    score: z.number().meta({ description: 'Orders results within one response; no fixed range.' }),
    metadata: returnedObject('Of the document, as given.'),
    components: Components.optional(),
  })
  .meta({ id: 'Result' });

const QueryChunk = z
  .strictObject({
    chunk_id: RankedResult.shape.chunk_id,
    chunk_index: RankedResult.shape.chunk_index,
    score: RankedResult.shape.score,
    components: Components.optional(),
  })
  .meta({ id: 'QueryChunk' });

/** A chunk, or a document with its chunks: one object for both, which clients can be generated from. */
const QueryResult = z
  .strictObject({
    doc_id: z.string(),
    chunk_id: RankedResult.shape.chunk_id.optional(),
    chunk_index: RankedResult.shape.chunk_index.optional(),
    score: RankedResult.shape.score,
    metadata: RankedResult.shape.metadata,
    components: Components.optional(),
    chunks: z.array(QueryChunk).optional().meta({
      description:
        'Of a grouped query, in place of `chunk_id`, `chunk_index` and `components`: the best chunks of the document, best first; `score` is that of the first.',
    }),
  })
  .meta({ id: 'QueryResult' });

const QueryAnswer = z
  .strictObject({ results: z.array(QueryResult), usage: RequestUsage })
  .meta({ id: 'QueryAnswer' });

export const QueryAnswers = z
  .strictObject({
    results: z.array(QueryAnswer).meta({ description: 'One for each query, in their order.' }),
    usage: RequestUsage,
  })
  .meta({ id: 'QueryAnswers' });

export const Ranked = z
  .strictObject({
    results: z.array(RankedResult).meta({
      description:
        'Best first; ties by the older document version (for `/v1/score` by the order submitted), then `chunk_index`.',
    }),
    usage: RequestUsage,
  })
  .meta({ id: 'Ranked' });
