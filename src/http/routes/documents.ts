import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Service } from '../../service/contract.ts';
import { addition } from '../schemas/addition.ts';
import { answers, readErrors, writeErrors } from './answers.ts';
import { jsonContentType } from '../error-body.ts';
import { FacetsAnswer, FacetsBody, facetValuesDefault } from '../schemas/facets.ts';
import { IndexParams, documentInputs } from '../schemas/fields.ts';
import {
  Deleted,
  DeletedDocuments,
  DeleteDocumentsBody,
  DocumentCount,
  DocumentList,
  DocumentListQuery,
  DocumentParams,
  ListDocumentsBody,
  StoredDocument,
  UpdateDocumentBody,
  UpsertBody,
  UpsertQuery,
  UpsertResult,
} from '../schemas/indexes.ts';
import { deletedMax } from '../limits.ts';
import { pageItemsDefault } from '../schemas/pages.ts';
import { documentListAnswer, facetsAnswer, storedDocumentText, upsertText } from './representations.ts';

export const documentRoutes = [documentBatches, documentReads, documentMatches, documentChanges];

function documentBatches(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/indexes/:index_id/documents', {
      config: { deadline: 'upsert' },
      schema: {
        operationId: 'upsertDocuments',
        summary: 'Store up to 50 documents; a `doc_id` that exists is replaced',
        description:
          'Each document is stored whole or not at all. Documents that cannot be processed are listed in `failed`, and the status is still 200. A request that passes its deadline stores nothing and gets 503.',
        tags: ['documents'],
        params: IndexParams,
        querystring: UpsertQuery,
        body: UpsertBody,
        response: answers({ 200: [UpsertResult, 'Every document was processed. Look into `failed`.'] }, [
          ...writeErrors,
          'usage_limit_exceeded',
        ]),
      },
      handler: async (request, reply) => {
        const { index_id: indexId } = request.params;
        const { expires_at: expiresAtMs } = request.query;
        const documents = documentInputs(request.body.documents);
        const response = await request.scope.run((context) =>
          service.upsertDocuments(
            context,
            indexId,
            documents,
            expiresAtMs === undefined ? {} : { expiresAtMs },
          ),
        );
        return reply.type(jsonContentType).send(upsertText(response));
      },
    });

    app.post('/indexes/:index_id/documents/delete', {
      config: { deadline: 'upsert' },
      schema: {
        operationId: 'deleteDocuments',
        summary: 'Delete documents by their metadata',
        description:
          'Deletes at most `limit` documents that match `filter` and `where`, oldest first, in one step. Searches that start after the answer do not see them. A document that is replaced meanwhile stays. A condition that every possible document meets, such as `{}`, is refused: to empty an index, delete it.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        body: DeleteDocumentsBody,
        response: answers(
          { 200: [DeletedDocuments, 'How many documents were deleted. Repeat while `more` is true.'] },
          writeErrors,
        ),
      },
      handler: async (request) => {
        const { filter, where, limit = deletedMax, dry_run: dryRun = false } = request.body;
        const wanted = { filter: filter?.text, where: where?.text, limit, dryRun };
        return await request.scope.run((context) =>
          service.deleteMatching(context, request.params.index_id, wanted),
        );
      },
    });
  };
}

function documentReads(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/indexes/:index_id/documents', {
      schema: {
        operationId: 'listDocuments',
        summary: 'List documents, without their texts',
        description:
          'Each document has its metadata and its number of chunks. A document that exists during the whole listing is on exactly one page. A page may hold fewer documents than `limit`: it ends once their metadata reach 4 MiB.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        querystring: DocumentListQuery,
        response: answers({ 200: [DocumentList, 'A page of documents, ordered by `doc_id`.'] }, readErrors),
      },
      handler: async (request, reply) => {
        const { limit = pageItemsDefault, cursor: after } = request.query;
        const { index_id: indexId } = request.params;
        const page = await request.scope.run((context) =>
          service.listDocuments(context, indexId, { limit, after }),
        );
        return reply.type(jsonContentType).send(await documentListAnswer(page));
      },
    });

    app.get('/indexes/:index_id/count', {
      schema: {
        operationId: 'countDocuments',
        summary: 'Count documents and chunks',
        description: 'The counts are exact. The time grows with the number of documents.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        response: answers({ 200: [DocumentCount, 'The counts.'] }, readErrors),
      },
      handler: async (request) => {
        const { index_id: indexId } = request.params;
        const { documents, chunks } = await request.scope.run((context) =>
          service.countDocuments(context, indexId),
        );
        return { documents, chunks };
      },
    });

    app.get('/indexes/:index_id/documents/:doc_id', {
      schema: {
        operationId: 'getDocument',
        summary: 'Get one document, without its text',
        description:
          'Returns the metadata and the number of chunks. Texts and token vectors are never returned.',
        tags: ['documents'],
        ...addition,
        params: DocumentParams,
        response: answers({ 200: [StoredDocument, 'The document.'] }, readErrors),
      },
      handler: async (request, reply) => {
        const { index_id: indexId, doc_id: docId } = request.params;
        const document = await request.scope.run((context) => service.getDocument(context, indexId, docId));
        return reply.type(jsonContentType).send(storedDocumentText(document));
      },
    });
  };
}

function documentMatches(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/indexes/:index_id/documents/list', {
      config: { reads: true, deadline: 'upsert' },
      schema: {
        operationId: 'listMatchingDocuments',
        summary: 'List the documents that a condition matches, without their texts',
        description:
          'The pages are those of `listDocuments`, without the documents that do not match. A document that matches during the whole listing is on exactly one page. The time of a page grows with the number of matching documents. Without `where`, or with one that every document meets, all documents are listed.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        body: ListDocumentsBody,
        response: answers({ 200: [DocumentList, 'A page of documents, ordered by `doc_id`.'] }, readErrors),
      },
      handler: async (request, reply) => {
        const { where, fields, limit = pageItemsDefault, cursor: after } = request.body;
        const wanted = { where: where?.text, fields, limit, after };
        const page = await request.scope.run((context) =>
          service.listDocuments(context, request.params.index_id, wanted),
        );
        return reply.type(jsonContentType).send(await documentListAnswer(page));
      },
    });

    app.post('/indexes/:index_id/facets', {
      config: { reads: true, deadline: 'upsert' },
      schema: {
        operationId: 'countValues',
        summary: 'Count documents by the values of metadata fields',
        description:
          'Counts the documents that match `filter` and `where`, or all, by the values of each field. The counts are exact. An array counts each of its values once; a document without the field counts nothing. The time grows with the number of documents. A field with more than 100,000 distinct values is refused.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        body: FacetsBody,
        response: answers({ 200: [FacetsAnswer, 'The most frequent values of each field.'] }, readErrors),
      },
      handler: async (request, reply) => {
        const { fields, filter, where, limit = facetValuesDefault } = request.body;
        const wanted = { fields, filter: filter?.text, where: where?.text, limit };
        const counted = await request.scope.run((context) =>
          service.countValues(context, request.params.index_id, wanted),
        );
        return reply.type(jsonContentType).send(await facetsAnswer(counted));
      },
    });
  };
}

function documentChanges(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.patch('/indexes/:index_id/documents/:doc_id', {
      schema: {
        operationId: 'updateDocument',
        summary: 'Replace or merge the metadata of a document, or change when it expires',
        description:
          'The text is not encoded again, and no tokens are charged. The change is durable when it is answered, and every later search sees it. The `chunk_id` values of the document change.',
        tags: ['documents'],
        ...addition,
        params: DocumentParams,
        body: UpdateDocumentBody,
        response: answers({ 200: [StoredDocument, 'The changed document.'] }, writeErrors),
      },
      handler: async (request, reply) => {
        const { index_id: indexId, doc_id: docId } = request.params;
        const { metadata, metadata_merge: merge, expires_at: expiresAtMs } = request.body;
        const change = { metadata: metadata?.text, metadataMerge: merge?.text, expiresAtMs };
        const document = await request.scope.run((context) =>
          service.updateDocument(context, indexId, docId, change),
        );
        return reply.type(jsonContentType).send(storedDocumentText(document));
      },
    });

    app.delete('/indexes/:index_id/documents/:doc_id', {
      schema: {
        operationId: 'deleteDocument',
        summary: 'Delete one document',
        description: 'Idempotent: for an absent document `deleted` is false.',
        tags: ['documents'],
        params: DocumentParams,
        response: answers({ 200: [Deleted, 'The document is gone.'] }, writeErrors),
      },
      handler: async (request) => {
        const { index_id: indexId, doc_id: docId } = request.params;
        const deleted = await request.scope.run((context) => service.deleteDocument(context, indexId, docId));
        return { deleted };
      },
    });
  };
}
