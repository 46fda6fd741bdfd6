import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { ServiceError } from '../../errors.ts';
import type { CreateIndexRequest, Service } from '../../service/contract.ts';
import { addition } from '../schemas/addition.ts';
import { admissionErrors, answers, readErrors, writeErrors } from './answers.ts';
import { jsonContentType } from '../error-body.ts';
import { IndexParams } from '../schemas/fields.ts';
import {
  CreateIndexBody,
  Deleted,
  Index,
  IndexList,
  IndexListQuery,
  UpdateIndexBody,
} from '../schemas/indexes.ts';
import { pageItemsDefault } from '../schemas/pages.ts';
import { indexIdAt } from '../index-names.ts';
import { indexListAnswer, indexText, measuredIndexText } from './representations.ts';

export const indexRoutes = [allIndexes, singleIndex];

function allIndexes(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/indexes', {
      schema: {
        operationId: 'createIndex',
        summary: 'Create an index',
        description: 'The index keeps its model version for ever. A tenant has at most 1,000 indexes.',
        tags: ['indexes'],
        body: CreateIndexBody,
        response: answers(
          {
            200: [Index, 'With `if_exists`: the index that existed. `Location` holds its address.'],
            201: [Index, 'The new index. `Location` holds its address.'],
          },
          [...admissionErrors, 'permission_denied', 'validation_error'],
        ),
      },
      handler: async (request, reply) => {
        const { body, scope } = request;
        const create: CreateIndexRequest = {
          name: body.name,
          metadataSchema: body.metadata_schema?.text,
          matchFields: body.match_fields,
          model: body.model,
          modelVersion: body.model_version,
          chunking: body.chunking && {
            maxTokens: body.chunking.max_tokens,
            overlapTokens: body.chunking.overlap_tokens,
            minimumChunkTokens: body.chunking.minimum_chunk_tokens,
          },
          returnsExisting: body.if_exists === 'return',
        };
        const index = await scope.run((context) => service.createIndex(context, create));
        return reply
          .code(index.isNew ? 201 : 200)
          .header('location', `indexes/${index.id}`)
          .type(jsonContentType)
          .send(indexText(index));
      },
    });

    app.get('/indexes', {
      schema: {
        operationId: 'listIndexes',
        summary: 'List your indexes',
        description:
          'Without parameters the answer holds all indexes. With `limit` or `cursor` it holds one page, which is an addition.',
        tags: ['indexes'],
        querystring: IndexListQuery,
        response: answers({ 200: [IndexList, 'Indexes, oldest first.'] }, [
          ...admissionErrors,
          'validation_error',
        ]),
      },
      handler: async (request, reply) => {
        const { limit, cursor } = request.query;
        reply.type(jsonContentType);
        if (limit === undefined && cursor === undefined) {
          const indexes = await request.scope.run((context) => service.listIndexes(context));
          return reply.send(await indexListAnswer(indexes));
        }
        const page = { limit: limit ?? pageItemsDefault, after: cursor };
        const { indexes, hasMore } = await request.scope.run((context) =>
          service.listIndexPage(context, page),
        );
        return reply.send(await indexListAnswer(indexes, hasMore));
      },
    });
  };
}

function singleIndex(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/indexes/:index_id', {
      schema: {
        operationId: 'getIndex',
        summary: 'Get an index',
        description: 'Returns the index with this `id`, or with this name.',
        tags: ['indexes'],
        ...addition,
        params: IndexParams,
        response: answers({ 200: [Index, 'The index.'] }, readErrors),
      },
      handler: async (request, reply) => {
        const { index_id: indexId } = request.params;
        const index = await request.scope.run((context) => service.getIndex(context, indexId));
        return reply.type(jsonContentType).send(measuredIndexText(index));
      },
    });

    app.patch('/indexes/:index_id', {
      schema: {
        operationId: 'updateIndex',
        summary: 'Rename an index, swap the names of two, or change its match fields',
        description:
          'A swap is one step: a client that looks up one of the names always finds one of the two indexes. Use it to put a newly filled index in the place of an old one. A swap is not idempotent: if the answer is lost, read the names before you send it again.',
        tags: ['indexes'],
        ...addition,
        params: IndexParams,
        body: UpdateIndexBody,
        response: answers({ 200: [Index, 'The index as it is now.'] }, writeErrors),
      },
      handler: async (request, reply) => {
        const { index_id: indexId } = request.params;
        const { name, swap_name_with: other, match_fields: fields } = request.body;
        const matchFields = fields === null ? [] : fields;
        const index = await request.scope.run(async (context) =>
          other === undefined
            ? service.updateIndex(context, indexId, { name, matchFields })
            : service.swapIndexNames(context, indexId, await indexIdAt(service, context, other)),
        );
        return reply.type(jsonContentType).send(indexText(index));
      },
    });

    app.delete('/indexes/:index_id', {
      schema: {
        operationId: 'deleteIndex',
        summary: 'Delete an index with all its documents',
        description: 'The index is gone at once and cannot be brought back. An absent index is 404.',
        tags: ['indexes'],
        ...addition,
        params: IndexParams,
        response: answers({ 200: [Deleted, 'Deleted.'] }, writeErrors),
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
