import { z } from 'zod';
import { addition } from './addition.ts';
import {
  candidateKMax,
  chunksOfDocumentMax,
  matchWeightDefault,
  matchWeightMax,
  passagePointsMax,
  topKDefault,
} from '../../service/contract.ts';
import {
  fieldNamesMax,
  filterFieldsMax,
  offsetMax,
  passageContextMax,
  queriesMax,
  queryComponentsMax,
  queryPassagesMax,
  queryResultsMax,
  topKMax,
} from '../limits.ts';
import {
  Documents,
  FieldNames,
  MatchFields,
  Name,
  Query,
  RequestUsage,
  addIssue,
  customerObject,
  returnedObject,
} from './fields.ts';

export const Hint = z
  .string()
  .optional()
  .meta({
    ...addition,
    description:
      'For people: says that `filter` or `where` looks like conditions of another product, which are compared as values, or why nothing was found: no document has a field, or the documents have values of another kind there, as far as the first of them show. In `query` only the first empty answer has the latter. Do not parse it.',
  });

const ReturnComponents = z
  .boolean()
  .optional()
  .meta({ description: 'Adds component scores to each result, for diagnosis. Default false.' });

const TopK = z
  .int()
  .min(1)
  .max(topKMax)
  .optional()
  .meta({ description: `Results at most. Default ${topKDefault}.` });

const Offset = z
  .int()
  .min(0)
  .max(offsetMax)
  .optional()
  .meta({
    ...addition,
    description:
      'So many of the best results are left out before the `top_k`: the next page. At least `offset` + `top_k` chunks are scored exactly. Default 0. Each page is a search of its own. So pages may shift where documents change meanwhile, and where a page takes more candidates than the page before. With `exact` they do so by changes alone.',
  });

const CandidateK = z.int().min(1).max(candidateKMax).optional().meta({
  description:
    'Chunks that are scored exactly. A larger number misses fewer results and takes longer. Default min(500, max(200, 5 x `top_k`)). A value below `offset` + `top_k` is raised to it.',
});

export const Filter = customerObject(
  'Top-level metadata fields and the values that they must equal. All fields must match; at most 16 fields. Values compare as JSON: 1 equals 1.0, null differs from a missing field, and the order of keys does not matter. A filter is not an authorization boundary.',
)
  .superRefine(({ members }, context) => {
    if (members > filterFieldsMax) {
      addIssue(context, 'too_big', `must have at most ${filterFieldsMax} fields`);
    }
  })
  .optional();

export const Where = customerObject(
  'Conditions on metadata fields, all of which must hold. `author.name` is the field `name` of the object `author`, except in documents with a top-level field of that very name; through an array of objects it reads the array of what they have. A nested field equals numbers, `true`, `false`, `null` and strings of at most 256 bytes alone. A field has a value that it must equal, as in `filter`, or an object of operators: `in` (one of these values), `not` (a value or operators that must not hold; a missing field passes), `gt`, `gte`, `lt`, `lte` (numbers by their exact value; strings of at most 256 bytes by their code points), `contains`, `contains_any`, `contains_all` (an array with this item, with one of these, or with all of these: strings of at most 256 bytes, numbers, true, false, null), `exists` (true or false), `starts_with` (strings that start with this one, of at most 256 bytes), `after`, `before` (dates such as `2026-11-27`, which means 00:00 UTC, `2026-11-27T09:30:00Z` or `2026-11-27 10:30+01:00`; without an offset a time is UTC; the bound is excluded). `any_of` lists objects like this one, of which at least one must hold. At most 256 values, 16 names with dots, and `any_of` at most three deep. A condition is not an authorization boundary.',
).optional();

export const NormalizedScore = z
  .number()
  .min(0)
  .max(1)
  .optional()
  .meta({
    ...addition,
    description:
      'The score as a share of the greatest MaxSim that the query could reach, at most 1. Without bonuses of `match`, 1 = every token of the query has its like. It is no probability, and compares answers to different queries of one model only roughly. Absent from services of an earlier release.',
  });

export const MinScore = z
  .number()
  .min(0)
  .max(1)
  .meta({
    ...addition,
    description: 'Results with a lower `normalized_score` are left out. Default 0: none.',
  });
const Context = z
  .int()
  .min(0)
  .max(passageContextMax)
  .optional()
  .meta({ description: 'Unicode code points that are shown before and after the chunk. Default 0.' });

const PassageOptions = z.strictObject({ from: Name, context: Context }).meta({
  id: 'PassageOptions',
  ...addition,
  description:
    'Adds the passage to each chunk: the part of the metadata field `from` at its `text_range`. The service keeps no text, so this is for documents that hold their text in their metadata. `text_range` refers to the text that was upserted: keep that very text in the field.',
});

const SubmittedPassageOptions = z.strictObject({ context: Context }).meta({
  id: 'SubmittedPassageOptions',
  ...addition,
  description: 'Adds the passage to each result: the part of the submitted text at its `text_range`.',
});

const MatchOptions = z
  .strictObject({
    fields: MatchFields.min(1)
      .optional()
      .meta({
        description: 'Some of the `match_fields` of the index. Default: all.',
        example: ['code'],
      }),
    weight: z
      .number()
      .positive()
      .max(matchWeightMax)
      .optional()
      .meta({
        description: `A factor on the bonuses, above 0 and at most ${matchWeightMax}. Default ${matchWeightDefault}.`,
      }),
  })
  .meta({ id: 'MatchOptions', ...addition });

const MatchWanted = z.union([z.literal(false), MatchOptions], { error: 'must be false or an object' }).meta({
  ...addition,
  description:
    'How words of the query match values of the `match_fields` of the index as a whole. A document with such a value gets a bonus, which grows with the weight of the words and with the rarity of the value. Default: all `match_fields` count. `false` switches it off. An object is 422 if the index has no `match_fields`.',
});

const searchFields = {
  query: Query,
  top_k: TopK,
  offset: Offset,
  candidate_k: CandidateK,
  filter: Filter,
  where: Where.meta(addition),
  return_components: ReturnComponents,
  min_score: MinScore.optional(),
  group_by_document: z
    .boolean()
    .optional()
    .meta({
      ...addition,
      description:
        'Ranks documents by their best chunks. Each result is a document with up to ten of its chunks. Default false.',
    }),
  exact: z
    .boolean()
    .optional()
    .meta({
      ...addition,
      description:
        'Scores every chunk that matches, instead of `candidate_k` of them. The time grows with their number. A search that would cost more than a request may is 422. Default false.',
    }),
  passage: PassageOptions.optional(),
  match: MatchWanted.optional(),
  fields: FieldNames.optional().meta({
    ...addition,
    description: `Metadata fields that the results hold, at most ${fieldNamesMax}. \`author.name\` is the field \`name\` of the object \`author\`, which then has no other. Default: all. A passage may come from another field.`,
    example: ['kind'],
  }),
};

export const SearchBody = z
  .strictObject(searchFields)
  .superRefine((search, context) => {
    if (detailedChunks(search) <= queryComponentsMax) return;
    addIssue(context, 'too_big', tooManyComponents, ['top_k']);
  })
  .meta({ id: 'Search' });

const QueryItem = z.strictObject(searchFields).meta({ id: 'QueryItem' });

const resultsOf = ({ top_k: topK }: z.output<typeof QueryItem>): number => topK ?? topKDefault;

const tooManyComponents = `must ask for the components of at most ${queryComponentsMax} chunks`;

/** How many chunks the answer may have. */
function chunksOf(search: z.output<typeof QueryItem>): number {
  return resultsOf(search) * (search.group_by_document === true ? chunksOfDocumentMax : 1);
}

/** How many of them may have components. */
function detailedChunks(search: z.output<typeof QueryItem>): number {
  return search.return_components === true ? chunksOf(search) : 0;
}

export const QueryBody = z
  .strictObject({
    queries: z
      .array(QueryItem)
      .min(1)
      .max(queriesMax)
      .superRefine((queries, context) => {
        const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);
        if (sumOf(queries.map(resultsOf)) > queryResultsMax) {
          addIssue(context, 'too_big', `must ask for at most ${queryResultsMax} results together`);
        }
        if (sumOf(queries.map(detailedChunks)) > queryComponentsMax) {
          addIssue(context, 'too_big', tooManyComponents);
        }
        if (sumOf(queries.map((query) => (query.passage ? chunksOf(query) : 0))) > queryPassagesMax) {
          addIssue(context, 'too_big', `must ask for the passages of at most ${queryPassagesMax} chunks`);
        }
      })
      .meta({
        description: `At most ${queriesMax} searches of this index. Together they ask for at most ${queryResultsMax} results, for components of at most ${queryComponentsMax} chunks, and for passages of at most ${queryPassagesMax}; a grouped search counts as ten chunks per result. Each counts as one search.`,
      }),
  })
  .meta({ id: 'Query' });

export const ScoreBody = z
  .strictObject({
    query: Query,
    documents: Documents,
    return_components: ReturnComponents,
    min_score: MinScore.optional(),
    passage: SubmittedPassageOptions.optional(),
  })
  .meta({ id: 'Score' });

const TextRange = z.strictObject({ start: z.int().min(0), end: z.int().min(1) }).meta({
  id: 'TextRange',
  ...addition,
  description:
    'Where it lies in the text that was submitted, in Unicode code points, `end` excluded. A word that is cut at the border of a chunk counts whole. Absent for special tokens, for tokens of the query without weight, where the tokenizer cannot say, and for documents that were upserted before there were ranges.',
});

const TokenMatch = z
  .strictObject({
    token_index: z.int().min(0),
    document_token_index: z.int().min(0).meta({
      description:
        'The number of the token vector in its chunk. A model that pools has fewer of them than tokens.',
    }),
    text_range: TextRange.optional(),
    text_ranges: z
      .array(TextRange)
      .min(2)
      .optional()
      .meta({
        ...addition,
        description:
          'Those of all tokens that the token vector stands for, in the order of the text. `text_range` is that of the one which represents them. Absent where it stands for one token.',
      }),
    similarity: z.number().meta({
      description:
        'The dot product of the vector of the query token, which is as long as the weight of the token, and the stored row. It may be above 1.',
    }),
  })
  .meta({
    id: 'TokenMatch',
    description: 'A token of the query, and the token of the chunk that is most similar to it.',
  });

const Match = z
  .strictObject({
    field: z.string().meta({ description: 'The metadata field, as `match_fields` names it.' }),
    value: z.string().meta({ description: 'The value, or the item of an array.' }),
    start: z.int().min(0),
    end: z.int().min(1),
    bonus: z.number().meta({ description: 'Its part of `score`.' }),
  })
  .meta({
    id: 'Match',
    ...addition,
    description:
      'Words of the query that match a metadata value as a whole. `start` and `end` are their place in the query, in Unicode code points.',
  });

export const Components = z
  .strictObject({
    maxsim: z.number().meta({
      description:
        'Sum of the best similarities of the query tokens. `score` is this and the bonuses of `matches`.',
    }),
    per_query_token: z.array(TokenMatch),
    candidate_score: z.number().optional().meta({
      description:
        'Approximate score by which the chunk became a candidate. Absent if every chunk was scored exactly, and for a chunk that only `match` found.',
    }),
    candidate_rank: z
      .int()
      .min(0)
      .optional()
      .meta({ description: 'Its place among the candidates by that score, from 0.' }),
    matches: z
      .array(Match)
      .optional()
      .meta({
        ...addition,
        description:
          'In the order of the query. Of a document with several chunks the best one has them. Absent without `match_fields`, with `match: false`, and in answers of `/v1/score`.',
      }),
  })
  .meta({ id: 'Components' });

const Highlight = z
  .strictObject({
    text: z.string(),
    start: z.int().min(0),
    end: z.int().min(1),
    similarity: z.number().meta({
      description: 'The greatest similarity of a token of the query to a piece of the word.',
    }),
    query_word: z.string().meta({ description: 'The word of the query that has this token.' }),
  })
  .meta({
    id: 'PassageHighlight',
    description: 'A word of a passage that matched. A model reads pieces of words; they are joined here.',
  });

export const Passage = z
  .strictObject({
    text: z.string(),
    start: z.int().min(0),
    end: z.int().min(1),
    highlights: z.array(Highlight).optional().meta({
      description:
        'The words that matched, in the order of the text. Only with `return_components`, and where the tokenizer can say where the words of the query are.',
    }),
  })
  .meta({
    id: 'Passage',
    ...addition,
    description: `The part of the text that was found, in whole words: at most ${passagePointsMax} code points. A longer one is cut around the word that matches best, or, without \`return_components\`, from its start. \`start\` and \`end\` are places in the whole text, in Unicode code points. Null if the document has no such field, if it is no string, if the chunk has no \`text_range\`, or if that begins beyond the end of the text. Absent unless \`passage\` was asked for.`,
  });

const ChunkId = z.string().meta({
  description:
    'Opaque. Unique in the index, and stable until the document or its metadata is replaced. In answers of `/v1/score` it is `transient_<integer>`.',
});
const ChunkIndex = z.int().min(0);
const Score = z.number().meta({ description: 'Orders the results of one answer. It has no fixed range.' });

const QueryChunk = z
  .strictObject({
    chunk_id: ChunkId,
    chunk_index: ChunkIndex,
    score: Score,
    normalized_score: NormalizedScore,
    text_range: TextRange.optional(),
    components: Components.optional(),
    passage: Passage.nullable().optional(),
  })
  .meta({ id: 'QueryChunk' });

const RankedResult = z
  .strictObject({
    doc_id: z.string(),
    chunk_id: ChunkId,
    chunk_index: ChunkIndex,
    score: Score,
    normalized_score: NormalizedScore,
    text_range: TextRange.optional(),
    metadata: returnedObject('Metadata of the document, as it was sent.'),
    components: Components.optional(),
    passage: Passage.nullable().optional(),
    chunks: z
      .array(QueryChunk)
      .optional()
      .meta({
        ...addition,
        description:
          'Only in a grouped search: the best chunks of the document, best first. The result itself is the first of them.',
      }),
  })
  .meta({ id: 'Result' });

/** A chunk, or a document with its chunks. One object for both, because generators of clients need that. */
const QueryResult = z
  .strictObject({
    doc_id: z.string(),
    chunk_id: RankedResult.shape.chunk_id.optional(),
    chunk_index: RankedResult.shape.chunk_index.optional(),
    score: RankedResult.shape.score,
    normalized_score: NormalizedScore,
    text_range: TextRange.optional(),
    metadata: RankedResult.shape.metadata,
    components: Components.optional(),
    passage: Passage.nullable().optional(),
    chunks: z.array(QueryChunk).optional().meta({
      description:
        'Only in a grouped search, instead of `chunk_id`, `chunk_index`, `text_range`, `components` and `passage`: the best chunks of the document, best first. `score` is the score of the first.',
    }),
  })
  .meta({ id: 'QueryResult' });

const QueryAnswer = z
  .strictObject({ results: z.array(QueryResult), hint: Hint, usage: RequestUsage })
  .meta({ id: 'QueryAnswer' });

export const QueryAnswers = z
  .strictObject({
    results: z.array(QueryAnswer).meta({ description: 'One answer per query, in the order of the queries.' }),
    usage: RequestUsage,
  })
  .meta({ id: 'QueryAnswers' });

export const Ranked = z
  .strictObject({
    results: z.array(RankedResult).meta({
      description:
        'Best first. Of equal scores the older document version comes first (in `/v1/score` the document that was sent first), then the lower `chunk_index`.',
    }),
    hint: Hint,
    usage: RequestUsage,
  })
  .meta({ id: 'Ranked' });
