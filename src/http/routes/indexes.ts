import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { ServiceError } from '../../errors.ts';
import type { CreateIndexRequest, Service } from '../../service/contract.ts';
import { addition, admissionErrors, answers } from './answers.ts';
import { jsonContentType } from '../error-body.ts';
import { IndexParams } from '../schemas/fields.ts';
import { CreateIndexBody, Deleted, Index, IndexList } from '../schemas/indexes.ts';
import { indexListAnswer, indexText } from './representations.ts';

export function indexRoutes(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/indexes', {
      schema: {
        operationId: 'createIndex',
        summary: 'Create an index',
        description: 'The returned model version is immutable for the index. At most 1,000 indexes a tenant.',
        tags: ['indexes'],
        body: CreateIndexBody,
        response: answers({ 201: [Index, 'Created; `Location` holds its address.'] }, [
          ...admissionErrors,
          'validation_error',
        ]),
      },
      handler: async (request, reply) => {
        const { body, scope } = request;
        const create: CreateIndexRequest = {
          name: body.name,
          metadataSchema: body.metadata_schema?.text ?? '{}',
          model: body.model,
          modelVersion: body.model_version,
          chunking: body.chunking && {
            maxTokens: body.chunking.max_tokens,
            overlapTokens: body.chunking.overlap_tokens,
            minimumChunkTokens: body.chunking.minimum_chunk_tokens,
          },
        };
        const index = await scope.run((context) => service.createIndex(context, create));
        return reply
          .code(201)
          .header('location', `/v1/indexes/${index.id}`)
          .type(jsonContentType)
          .send(indexText(index));
      },
    });

    app.get('/indexes', {
      schema: {
        operationId: 'listIndexes',
        summary: 'List the indexes of the tenant',
        description: 'All of them, without pages: a tenant has at most 1,000.',
        tags: ['indexes'],
        response: answers({ 200: [IndexList, 'All indexes, oldest first.'] }, admissionErrors),
      },
      handler: async (request, reply) => {
        const indexes = await request.scope.run((context) => service.listIndexes(context));
        return reply.type(jsonContentType).send(await indexListAnswer(indexes));
      },
    });

    app.get('/indexes/:index_id', {
      schema: {
        operationId: 'getIndex',
        summary: 'Get an index',
        description: 'By its `id`.',
        tags: ['indexes'],
        ...addition,
        params: IndexParams,
        response: answers({ 200: [Index, 'The index.'] }, [
          ...admissionErrors,
          'not_found',
          'validation_error',
        ]),
      },
      handler: async (request, reply) => {
        const { index_id: indexId } = request.params;
        const index = await request.scope.run((context) => service.getIndex(context, indexId));
        return reply.type(jsonContentType).send(indexText(index));
      },
    });

    app.delete('/indexes/:index_id', {
      schema: {
        operationId: 'deleteIndex',
        summary: 'Delete an index and every document in it',
        description: 'At once and for good. An absent index is 404.',
        tags: ['indexes'],
        ...addition,
        params: IndexParams,
        response: answers({ 200: [Deleted, 'Deleted.'] }, [
          ...admissionErrors,
          'not_found',
          'validation_error',
        ]),
      },
      handler: async (request) => {
        const { index_id: indexId } = request.params;
        const deleted = await request.scope.run((context) => service.deleteIndex(context, indexId));
        if (!deleted) throw new ServiceError('not_found', 'no such index');
        return { deleted };
      },
    });
  };
}
