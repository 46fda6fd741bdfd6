/**
 * Routes for the console alone: what the session may do, the models, the contents of indexes, and the places of tokens in a text.
 */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Service } from '../../service/contract.ts';
import { IndexId, IndexParams, Query, Text } from '../schemas/fields.ts';

/** More chunks than any text has. */
const chunkIndexMax = 1 << 20;

const AlignBody = z.strictObject({
  /** Absent = the model and chunking of `/v1/score`. */
  index_id: IndexId.optional(),
  query: Query,
  document: z.strictObject({ text: Text, chunk_index: z.int().min(0).max(chunkIndexMax) }).optional(),
});

export function insightRoutes(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/session', {
      schema: { operationId: 'session' },
      handler: async ({ scope }) => ({ access: scope.access }),
    });

    app.get('/models', {
      schema: { operationId: 'models' },
      handler: async ({ scope }) => {
        const { names, defaultName } = await scope.run((context) => service.modelNames(context));
        return { data: names.map((name) => ({ name, is_default: name === defaultName })) };
      },
    });

    app.get('/contents', {
      schema: { operationId: 'contents' },
      handler: async ({ scope }) => ({ data: await scope.run((context) => service.contents(context)) }),
    });

    app.get('/indexes/:index_id/description', {
      schema: { operationId: 'describeIndex', params: IndexParams },
      handler: async ({ params, scope }) => {
        const { documents, segments } = await scope.run((context) =>
          service.describeIndex(context, params.index_id),
        );
        return {
          documents,
          segments: segments.map(({ tokenVectors, derivedBytes, ...segment }) => ({
            ...segment,
            token_vectors: tokenVectors,
            derived_bytes: derivedBytes,
          })),
        };
      },
    });

    app.post('/tokens', {
      config: { reads: true },
      schema: { operationId: 'locateTokens', body: AlignBody },
      handler: async ({ body, scope }) => {
        const { index_id: indexId, query, document } = body;
        const located = await scope.run((context) =>
          service.locateTokens(context, {
            indexId,
            query,
            document: document && { text: document.text, chunkIndex: document.chunk_index },
          }),
        );
        return { query: located.query ?? null, document: located.document ?? null };
      },
    });
  };
}
