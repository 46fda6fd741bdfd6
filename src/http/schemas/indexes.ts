import { z } from 'zod';
import { addition } from '../routes/answers.ts';
import { deletedMax } from '../limits.ts';
import { Filter, Where } from './ranking.ts';
import {
  Count,
  DocId,
  Documents,
  IndexId,
  Metadata,
  Name,
  RequestUsage,
  Timestamp,
  addIssue,
  customerObject,
  returnedObject,
} from './fields.ts';
import { DocumentCursor, CreationCursor, Limit, NextCursor } from './pages.ts';

const TextRetention = z.enum(['none']);

const ChunkingOptions = z
  .strictObject({
    max_tokens: z.int().min(1).optional().meta({ description: 'Default 256; bounded by the model.' }),
    overlap_tokens: z.int().min(0).optional().meta({ description: 'Default 32; below `max_tokens`.' }),
    minimum_chunk_tokens: z
      .int()
      .min(0)
      .optional()
      .meta({ description: 'Default 16. A shorter trailing window is joined to the one before it.' }),
  })
  .meta({ id: 'ChunkingOptions' });

export const CreateIndexBody = z
  .strictObject({
    name: Name.meta({ description: 'Unique within the tenant.', example: 'handbook' }),
    model: Name.optional().meta({ description: 'Omit unless asked to select a supported model.' }),
    model_version: Name.optional().meta({
      ...addition,
      description:
        'Where several are installed. Default: of the default model its default version, of another its newest.',
    }),
    text_retention: TextRetention.optional(),
    metadata_schema: customerObject(
      'Descriptive customer metadata schema: any object of at most 16 KiB, white space between tokens aside, and 16 levels; returned as given. Default `{}`.',
    ).optional(),
    chunking: ChunkingOptions.optional(),
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

export const Index = z
  .strictObject({
    id: IndexId,
    name: z.string().min(1),
    model: z.string().min(1).meta({ description: 'Immutable.' }),
    model_version: z.string().min(1).meta({ description: 'Immutable serving version of this index.' }),
    text_retention: TextRetention,
    chunking: Chunking,
    metadata_schema: returnedObject('As given.'),
    status: z.enum(['creating', 'ready', 'error']),
    created_at: Timestamp,
  })
  .meta({ id: 'Index' });

export const IndexList = z
  .strictObject({
    data: z.array(Index).meta({ description: 'In order of creation.' }),
    next_cursor: NextCursor.optional().meta({
      ...addition,
      description:
        'What the next page is asked for with; null: there is none. Absent where no page was asked for.',
    }),
  })
  .meta({ id: 'IndexList' });

/** Whatever else stands there is ignored, as it always was. */
export const IndexListQuery = z.object({ limit: Limit, cursor: CreationCursor });

export const UpdateIndexBody = z
  .strictObject({
    name: Name.optional().meta({
      description: 'The new name, unique within the tenant.',
      example: 'handbook',
    }),
    swap_name_with: IndexId.optional().meta({
      description: 'Identifier of another index: each gets the name of the other, in one step.',
    }),
  })
  .superRefine(({ name, swap_name_with: other }, context) => {
    if ((name === undefined) === (other === undefined))
      addIssue(context, 'invalid', 'must have one of `name` and `swap_name_with`');
  })
  .meta({ id: 'UpdateIndex', description: 'One of the two.' });

export const Deleted = z
  .strictObject({ deleted: z.boolean().meta({ description: 'Whether something stored was removed.' }) })
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
      .meta({ description: `Documents deleted at most. Default ${deletedMax}.` }),
  })
  .meta({ id: 'DeleteDocuments' });

export const DeletedDocuments = z
  .strictObject({
    deleted: Count.meta({ description: 'Documents that are gone now.' }),
    more: z.boolean().meta({ description: 'Others match that are left: ask again.' }),
  })
  .meta({ id: 'DeletedDocuments' });

export const UpsertBody = z.strictObject({ documents: Documents }).meta({ id: 'Upsert' });

const DocumentFailure = z
  .strictObject({ doc_id: DocId, error: z.string().meta({ description: 'Diagnostic only.' }) })
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
      description: 'Documents that could not be processed; inspect before treating the batch as complete.',
    }),
    unknown_tokens: z
      .array(UnknownTokens)
      .optional()
      .meta({
        ...addition,
        description:
          'Upserted documents with text that the vocabulary of the model does not have, such as a script or emoji that it was not trained on: a search cannot tell such texts apart. Absent where there are none.',
      }),
    usage: RequestUsage,
  })
  .meta({ id: 'UpsertResult' });

export const StoredDocument = z
  .strictObject({
    doc_id: z.string(),
    metadata: returnedObject('As given.'),
    chunk_count: z.int().min(1).meta({ example: 3 }),
  })
  .meta({ id: 'StoredDocument', description: 'A document as it is stored now, without its text.' });

export const DocumentList = z
  .strictObject({
    data: z.array(StoredDocument).meta({ description: 'By `doc_id`, in the order of its bytes as UTF-8.' }),
    next_cursor: NextCursor,
  })
  .meta({ id: 'DocumentList' });

export const DocumentListQuery = z.strictObject({ limit: Limit, cursor: DocumentCursor });

export const DocumentCount = z
  .strictObject({ documents: Count, chunks: Count })
  .meta({ id: 'DocumentCount', description: 'What the index holds now.' });

export const UpdateDocumentBody = z
  .strictObject({ metadata: Metadata.meta({ description: 'Takes the place of the whole object before.' }) })
  .meta({ id: 'UpdateDocument' });

export const DocumentParams = z.strictObject({ index_id: IndexId, doc_id: DocId });
