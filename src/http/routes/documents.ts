import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Service } from '../../service/contract.ts';
import { addition, admissionErrors, answers } from './answers.ts';
import { jsonContentType } from '../error-body.ts';
import { IndexParams, documentInputs } from '../schemas/fields.ts';
import {
  Deleted,
  DeletedDocuments,
  DeleteDocumentsBody,
  DocumentParams,
  UpsertBody,
  UpsertResult,
} from '../schemas/indexes.ts';
import { deletedMax } from '../limits.ts';
import { upsertText } from './representations.ts';

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
          ...admissionErrors,
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
          'Deletes documents that match `filter` and `where`, oldest first and at most `limit`, in one step: searches that start after the answer see none of them. A document that is replaced meanwhile stays.',
        tags: ['documents'],
        ...addition,
        params: IndexParams,
        body: DeleteDocumentsBody,
        response: answers({ 200: [DeletedDocuments, 'Gone; ask again while `more`.'] }, [
          ...admissionErrors,
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

    app.delete('/indexes/:index_id/documents/:doc_id', {
      schema: {
        operationId: 'deleteDocument',
        summary: 'Delete a document',
        description: 'Idempotent: an absent document answers `deleted` false.',
        tags: ['documents'],
        params: DocumentParams,
        response: answers({ 200: [Deleted, 'Gone, whether or not it was there.'] }, [
          ...admissionErrors,
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
