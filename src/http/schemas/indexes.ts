import { z } from 'zod';
import { addition } from './addition.ts';
import { deletedMax, fieldNamesMax, matchFieldsMax, pageItemsMax } from '../limits.ts';
import { Filter, Hint, Where } from './ranking.ts';
import {
  Count,
  DocId,
  Documents,
  ExpiresAt,
  FieldNames,
  IndexAddress,
  IndexId,
  MatchFields,
  Metadata,
  Name,
  RequestUsage,
  Timestamp,
  addIssue,
  customerObject,
  returnedObject,
} from './fields.ts';
import { DocumentCursor, CreationCursor, Limit, NextCursor, pageItemsDefault } from './pages.ts';

const TextRetention = z.enum(['none']);

const ChunkingOptions = z
  .strictObject({
    max_tokens: z
      .int()
      .min(1)
      .optional()
      .meta({ description: 'Tokens of a chunk at most. Default 256. The model sets the upper bound.' }),
    overlap_tokens: z.int().min(0).optional().meta({
      description: 'Tokens that neighbouring chunks share. Default 32. At most half of `max_tokens`.',
    }),
    minimum_chunk_tokens: z
      .int()
      .min(0)
      .optional()
      .meta({ description: 'Default 16. A last chunk that is shorter is joined to the chunk before it.' }),
  })
  .meta({ id: 'ChunkingOptions' });

export const CreateIndexBody = z
  .strictObject({
    name: Name.meta({ description: 'Unique within the tenant.', example: 'handbook' }),
    model: Name.optional().meta({
      description: 'Name of an installed model. Omit it to use the default model.',
    }),
    model_version: Name.optional().meta({
      ...addition,
      description:
        'Selects one of several installed versions. Default: the configured version of the default model, or else the newest version that every node serves.',
    }),
    text_retention: TextRetention.optional(),
    metadata_schema: customerObject(
      'A description of your metadata for people: any object of at most 16 KiB and 16 levels. It is returned as it was sent, and nothing is checked against it. Default `{}`.',
    ).optional(),
    chunking: ChunkingOptions.optional(),
    match_fields: MatchFields.optional().meta({
      ...addition,
      description: `Metadata fields with codes, part numbers or names, at most ${matchFieldsMax}. \`part.number\` is the field \`number\` of the object \`part\`. A document whose text in one of them (a string, or one in an array, of at most 256 bytes) stands as a whole in a query gets a bonus. Upper and lower case, spaces and signs do not count: \`E11.65\` is \`e1165\`. Default: none.`,
    }),
    if_exists: z
      .enum(['return'])
      .optional()
      .meta({
        ...addition,
        description:
          'With `return` the answer is 200 and the index that has the name already, if it agrees with every field of this request; otherwise 422 names the fields. Absent: a name in use is 422.',
      }),
  })
  .meta({ id: 'CreateIndex' });

const Chunking = z
  .strictObject({
    strategy: z.literal('token_window'),
    max_tokens: z.int(),
    overlap_tokens: z.int(),
    minimum_chunk_tokens: z.int(),
  })
  .meta({ id: 'Chunking' });

const Estimate = z
  .strictObject({ mean: z.number(), low: z.number(), high: z.number() })
  .meta({ id: 'Estimate', description: 'A share, and its 95 percent confidence interval.' });

export const Recall = z
  .strictObject({
    at_10: Estimate,
    at_100: Estimate,
    searches: z.int().min(1).meta({ description: 'Measured searches that the shares come from.' }),
    breadth: z
      .number()
      .meta({ description: 'The factor on the length of shortlists that the index has now.' }),
  })
  .meta({
    id: 'Recall',
    description:
      'The share of the exact best 10 and 100 chunks that searches at the default `candidate_k` find.',
  });

export const Index = z
  .strictObject({
    id: IndexId,
    name: z.string().min(1),
    model: z.string().min(1).meta({ description: 'Immutable.' }),
    model_version: z.string().min(1).meta({ description: 'Immutable.' }),
    text_retention: TextRetention,
    chunking: Chunking,
    metadata_schema: returnedObject('As it was sent.'),
    status: z.enum(['creating', 'ready', 'error']),
    created_at: Timestamp,
    match_fields: z
      .array(z.string())
      .optional()
      .meta({
        ...addition,
        description:
          'Metadata fields that words of a query match. Empty if there are none. Absent from services of an earlier release.',
      }),
    recall: Recall.nullable()
      .optional()
      .meta({
        ...addition,
        description:
          'In the answer for one index: what the process that answers has measured on a sample of real searches. Null until it has measured some.',
      }),
  })
  .meta({ id: 'Index' });

export const IndexList = z
  .strictObject({
    data: z.array(Index).meta({ description: 'In order of creation.' }),
    next_cursor: NextCursor.optional().meta({
      ...addition,
      description:
        'Send it as `cursor` to get the next page. Null on the last page. Absent if no page was asked for.',
    }),
  })
  .meta({ id: 'IndexList' });

export const IndexListQuery = z.strictObject({ limit: Limit, cursor: CreationCursor });

export const UpdateIndexBody = z
  .strictObject({
    name: Name.optional().meta({
      description: 'The new name, unique within the tenant.',
      example: 'handbook',
    }),
    swap_name_with: IndexAddress.optional().meta({
      description:
        'Another index: its `id`, or `name:` and its name. The two indexes exchange their names in one step. Their match fields stay with their ids.',
    }),
    match_fields: MatchFields.nullable()
      .optional()
      .meta({
        description: `Replaces the match fields, at most ${matchFieldsMax}; null or an empty list: it has none. Documents that were written before match once their metadata are written again. In a cluster 503 while a node of an earlier release is left.`,
      }),
  })
  .superRefine(({ name, swap_name_with: other, match_fields: matchFields }, context) => {
    const changes = name !== undefined || matchFields !== undefined;
    if (changes === (other !== undefined))
      addIssue(context, 'invalid', 'must have `name`, `match_fields` or both, or `swap_name_with` alone');
  })
  .meta({ id: 'UpdateIndex', description: '`name`, `match_fields` or both, or `swap_name_with` alone.' });

export const Deleted = z
  .strictObject({ deleted: z.boolean().meta({ description: 'Whether something was removed.' }) })
  .meta({ id: 'Deleted' });

export const DeleteDocumentsBody = z
  .strictObject({
    filter: Filter,
    where: Where,
    limit: z
      .int()
      .min(1)
      .max(deletedMax)
      .optional()
      .meta({ description: `Documents to delete at most. Default ${deletedMax}.` }),
    dry_run: z
      .boolean()
      .optional()
      .meta({
        ...addition,
        description:
          'Deletes nothing. `matching` of the answer is the number of documents that match. Default false.',
      }),
  })
  .meta({ id: 'DeleteDocuments' });

export const DeletedDocuments = z
  .strictObject({
    deleted: Count.meta({ description: 'Number of documents that were deleted.' }),
    more: z.boolean().meta({ description: 'True if more documents match. Send the request again.' }),
    matching: Count.optional().meta({
      ...addition,
      description: 'Only with `dry_run`: the number of documents that match, whatever `limit` is.',
    }),
    hint: Hint,
  })
  .meta({ id: 'DeletedDocuments' });

export const UpsertQuery = z.strictObject({
  expires_at: ExpiresAt.optional().meta({
    ...addition,
    description:
      'RFC 3339, such as `2027-01-31T00:00:00Z`; write `+` in a URL as `%2B`. From then on the documents of this request are in no answer, and within a day they are erased. Absent: they do not expire, also where they replace one that would.',
  }),
});

export const UpsertBody = z.strictObject({ documents: Documents }).meta({ id: 'Upsert' });

const DocumentFailure = z
  .strictObject({ doc_id: DocId, error: z.string().meta({ description: 'For people. Do not parse it.' }) })
  .meta({ id: 'DocumentFailure' });

const UnknownTokens = z
  .strictObject({ doc_id: DocId, unknown_tokens: Count, input_tokens: Count })
  .meta({ id: 'UnknownTokens' });

export const UpsertResult = z
  .strictObject({
    index_id: IndexId,
    upserted_documents: Count,
    upserted_chunks: Count,
    failed: z.array(DocumentFailure).meta({
      description: 'Documents that could not be processed. The batch is complete only if this list is empty.',
    }),
    unknown_tokens: z
      .array(UnknownTokens)
      .optional()
      .meta({
        ...addition,
        description:
          'Stored documents with text outside the vocabulary of the model, such as a script or emoji that it was not trained on. A search cannot tell such texts apart. Absent if there are none.',
      }),
    usage: RequestUsage,
  })
  .meta({ id: 'UpsertResult' });

export const StoredDocument = z
  .strictObject({
    doc_id: z.string(),
    metadata: returnedObject('As it was sent.'),
    chunk_count: z.int().min(1).meta({ example: 3 }),
    expires_at: Timestamp.optional().meta({
      ...addition,
      description: 'From then on the document is in no answer. Absent: it does not expire.',
    }),
  })
  .meta({ id: 'StoredDocument', description: 'A stored document, without its text.' });

export const DocumentList = z
  .strictObject({
    data: z.array(StoredDocument).meta({ description: 'Ordered by the UTF-8 bytes of `doc_id`.' }),
    next_cursor: NextCursor,
    hint: Hint,
  })
  .meta({ id: 'DocumentList' });

export const DocumentListQuery = z.strictObject({ limit: Limit, cursor: DocumentCursor });

export const ListDocumentsBody = z
  .strictObject({
    where: Where,
    fields: FieldNames.optional().meta({
      description: `Metadata fields that the answer has, at most ${fieldNamesMax}, in this order. \`author.name\` is the field \`name\` of the object \`author\`, which then has no other. Absent: all.`,
    }),
    limit: z
      .int()
      .min(1)
      .max(pageItemsMax)
      .optional()
      .meta({ description: `Documents per page at most. Default ${pageItemsDefault}.` }),
    cursor: DocumentCursor,
  })
  .meta({ id: 'ListDocuments' });

export const DocumentCount = z
  .strictObject({ documents: Count, chunks: Count })
  .meta({ id: 'DocumentCount', description: 'The numbers at the moment of the request.' });

export const UpdateDocumentBody = z
  .strictObject({
    metadata: Metadata.optional().meta({ description: 'Replaces the whole object.' }),
    metadata_merge: customerObject(
      'Is merged into the stored metadata (RFC 7396): a field with null is removed, an object is merged into the stored object, every other value replaces. Numbers keep their digits. The result has at most 16 KiB. Changes at once that merge all count. Not beside `metadata`.',
    )
      .optional()
      .meta(addition),
    expires_at: ExpiresAt.nullable().optional().meta({
      description: 'RFC 3339. From then on the document is in no answer. Null: it does not expire any more.',
    }),
  })
  .superRefine(({ metadata, metadata_merge: merge, expires_at: expiresAt }, context) => {
    if (metadata === undefined && merge === undefined && expiresAt === undefined)
      addIssue(context, 'invalid', 'must have `metadata`, `metadata_merge` or `expires_at`', ['metadata']);
    if (metadata !== undefined && merge !== undefined)
      addIssue(context, 'invalid', 'must not stand beside `metadata`', ['metadata_merge']);
  })
  .meta({ id: 'UpdateDocument', description: 'At least one field. Absent fields stay as they are.' });

export const DocumentParams = z.strictObject({ index_id: IndexAddress, doc_id: DocId });
