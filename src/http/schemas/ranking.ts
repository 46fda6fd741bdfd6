import { z } from 'zod';
import { candidateKMax, topKDefault } from '../../service/contract.ts';
import { filterFieldsMax, topKMax } from '../limits.ts';
import { Documents, Query, RequestUsage, addIssue, customerObject, returnedObject } from './fields.ts';

const ReturnComponents = z
  .boolean()
  .optional()
  .meta({ description: 'Adds diagnostic component scores to each result. Default false.' });

export const SearchBody = z
  .strictObject({
    query: Query,
    top_k: z
      .int()
      .min(1)
      .max(topKMax)
      .optional()
      .meta({ description: `Maximum results returned. Default ${topKDefault}.` }),
    candidate_k: z.int().min(1).max(candidateKMax).optional().meta({
      description:
        'Chunks scored exactly. Default min(500, max(200, 5 x `top_k`)); below `top_k` it is raised to it.',
    }),
    filter: customerObject(
      'Exact matches against top-level metadata fields, all of which must hold; at most 16 fields. Values compare as JSON: 1 equals 1.0, null is not a missing field, objects compare without regard to key order. Not an authorization boundary.',
    )
      .superRefine(({ members }, context) => {
        if (members > filterFieldsMax) {
          addIssue(context, 'too_big', `must have at most ${filterFieldsMax} fields`);
        }
      })
      .optional(),
    return_components: ReturnComponents,
  })
  .meta({ id: 'Search' });

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
        'Opaque; unique in the index and stable until the document is replaced. `transient_<integer>` for `/v1/score`.',
    }),
    chunk_index: z.int().min(0),
    score: z.number().meta({ description: 'Orders results within one response; no fixed range.' }),
    metadata: returnedObject('Of the document, as given.'),
    components: Components.optional(),
  })
  .meta({ id: 'Result' });

export const Ranked = z
  .strictObject({
    results: z.array(RankedResult).meta({
      description:
        'Best first; ties by the older document version (for `/v1/score` by the order submitted), then `chunk_index`.',
    }),
    usage: RequestUsage,
  })
  .meta({ id: 'Ranked' });
