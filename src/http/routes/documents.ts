import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Service } from '../../service/contract.ts';
import { addition, admissionErrors, answers, changeErrors } from './answers.ts';
import { jsonContentType } from '../error-body.ts';
import { IndexParams, documentInputs } from '../schemas/fields.ts';
import {
  Deleted,
  DeletedDocuments,
  DeleteDocumentsBody,
  DocumentCount,
  DocumentList,
  DocumentListQuery,
  DocumentParams,
  StoredDocument,
  UpdateDocumentBody,
  UpsertBody,
  UpsertResult,
} from '../schemas/indexes.ts';
import { deletedMax } from '../limits.ts';
import { pageItemsDefault } from '../schemas/pages.ts';
import { documentListAnswer, storedDocumentText, upsertText } from './representations.ts';

export function documentRoutes(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/indexes/:index_id/documents', {
      config: { deadline: 'upsert' },
      schema: {
        operationId: 'upsertDocuments',
        summary: 'Create or replace documents',
        description:
          'Each document is created or replaced by `doc_id`, whole or not at all. Items that cannot be processed are listed in `failed`; the answer is 200 all the same. Past its deadline nothing is stored and the answer is 503.',
        tags: ['documents'],
        params: IndexParams,
        body: UpsertBody,
        response: answers({ 200: [UpsertResult, 'Every item was evaluated; inspect `failed`.'] }, [
          ...changeErrors,
          'not_found',
          'validation_error',
          'usage_limit_exceeded',
        ]),
      },
      handler: async (request, reply) => {
        const { index_id: indexId } = request.params;
        const documents = documentInputs(request.body.documents);
        const response = await request.scope.run((context) =>
          service.upsertDocuments(context, indexId, documents),
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
          'Deletes documents that match `filter` and `where`, oldest first and at most `limit`, in one step: searches that start after the answer see none of them. A document that is replaced meanwhile stays. Conditions that every document meets, whatever it holds, are refused: an index is emptied by deleting it.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        body: DeleteDocumentsBody,
        response: answers({ 200: [DeletedDocuments, 'Gone; ask again while `more`.'] }, [
          ...changeErrors,
          'not_found',
          'validation_error',
        ]),
      },
      handler: async (request) => {
        const { filter, where, limit } = request.body;
        const wanted = { filter: filter?.text, where: where?.text, limit: limit ?? deletedMax };
        return await request.scope.run((context) =>
          service.deleteMatching(context, request.params.index_id, wanted),
        );
      },
    });

    app.get('/indexes/:index_id/documents', {
      schema: {
        operationId: 'listDocuments',
        summary: 'List the documents of an index',
        description:
          'Each with its metadata and the number of its chunks. A document that is stored throughout is on one page exactly, whatever else comes and goes meanwhile. A page ends early once its metadata have 4 MiB.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        querystring: DocumentListQuery,
        response: answers({ 200: [DocumentList, 'A page, by `doc_id`.'] }, [
          ...admissionErrors,
          'not_found',
          'validation_error',
        ]),
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
        summary: 'Count the documents and chunks of an index',
        description: 'Exactly, at the moment of the request. It takes longer with more documents.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        response: answers({ 200: [DocumentCount, 'The counts.'] }, [
          ...admissionErrors,
          'not_found',
          'validation_error',
        ]),
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
        summary: 'Get a document',
        description: 'Its metadata and the number of its chunks. Texts and token vectors are never returned.',
        tags: ['documents'],
        ...addition,
        params: DocumentParams,
        response: answers({ 200: [StoredDocument, 'The document.'] }, [
          ...admissionErrors,
          'not_found',
          'validation_error',
        ]),
      },
      handler: async (request, reply) => {
        const { index_id: indexId, doc_id: docId } = request.params;
        const document = await request.scope.run((context) => service.getDocument(context, indexId, docId));
        return reply.type(jsonContentType).send(storedDocumentText(document));
      },
    });

    app.patch('/indexes/:index_id/documents/:doc_id', {
      schema: {
        operationId: 'updateDocument',
        summary: 'Replace the metadata of a document',
        description:
          'Its text is not encoded again, and no tokens are charged. Otherwise as an upsert: durable when it is answered, seen by every search that comes after, and the `chunk_id` values of the document change.',
        tags: ['documents'],
        ...addition,
        params: DocumentParams,
        body: UpdateDocumentBody,
        response: answers({ 200: [StoredDocument, 'The document as it is stored now.'] }, [
          ...changeErrors,
          'not_found',
          'validation_error',
        ]),
      },
      handler: async (request, reply) => {
        const { index_id: indexId, doc_id: docId } = request.params;
        const { metadata } = request.body;
        const document = await request.scope.run((context) =>
          service.updateMetadata(context, indexId, docId, metadata.text),
        );
        return reply.type(jsonContentType).send(storedDocumentText(document));
      },
    });

    app.delete('/indexes/:index_id/documents/:doc_id', {
      schema: {
        operationId: 'deleteDocument',
        summary: 'Delete a document',
        description: 'Idempotent: an absent document answers `deleted` false.',
        tags: ['documents'],
        params: DocumentParams,
        response: answers({ 200: [Deleted, 'Gone, whether or not it was there.'] }, [
          ...changeErrors,
          'not_found',
          'validation_error',
        ]),
      },
      handler: async (request) => {
        const { index_id: indexId, doc_id: docId } = request.params;
        const deleted = await request.scope.run((context) => service.deleteDocument(context, indexId, docId));
        return { deleted };
      },
    });
  };
}
