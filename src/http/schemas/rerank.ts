/** A re-rank request and its answer, in the shapes that the SDKs of Cohere (v2) and Jina send and read. They send null for "absent". */
import { z } from 'zod';
import { documentsMax } from '../limits.ts';
import { Count, Name, Query, Text } from './fields.ts';

/** The `model` that stands for the default model of the service. */
export const defaultModelAlias = 'default';

const RerankText = z.strictObject({ text: Text }).meta({ id: 'RerankText' });

export const RerankBody = z
  .strictObject({
    model: Name.meta({
      description: `Name of a model, as for an index, or \`${defaultModelAlias}\`: the default model.`,
      example: defaultModelAlias,
    }),
    query: Query,
    documents: z
      .array(z.union([Text, RerankText], { error: 'must be a string or an object with a `text` alone' }))
      .min(1)
      .max(documentsMax)
      .meta({ description: 'Texts, or objects with a text.' }),
    top_n: z.int().min(1).nullish().meta({ description: 'Results at most. Default: all.' }),
    return_documents: z
      .boolean()
      .nullish()
      .meta({ description: 'Adds its text to each result. Default false.' }),
    max_tokens_per_doc: z.int().min(1).nullish().meta({
      description:
        'A document of more tokens refuses the request, because no text is cut. Default: no bound.',
    }),
    priority: z
      .literal(0, { error: 'must be 0: no request goes before others' })
      .nullish()
      .meta({ description: 'Only 0, because no request goes before others.' }),
  })
  .meta({ id: 'Rerank' });

const RerankedDocument = z.strictObject({ text: z.string() }).meta({ id: 'RerankedDocument' });

const RerankResult = z
  .strictObject({
    index: z.int().min(0).meta({ description: 'Position of the document in the request.' }),
    relevance_score: z.number().meta({
      description:
        'Orders the documents of one query by one model. It is no probability, and has no fixed range.',
    }),
    document: RerankedDocument.optional(),
  })
  .meta({ id: 'RerankResult' });

const RerankVersion = z.strictObject({ version: z.string() }).meta({ id: 'RerankVersion' });
const RerankBilled = z.strictObject({ input_tokens: Count }).meta({ id: 'RerankBilled' });
const RerankMeta = z
  .strictObject({ api_version: RerankVersion, billed_units: RerankBilled })
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
