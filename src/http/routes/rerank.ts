/** Scores of `/v1/score` in the shapes of Cohere and Jina, so that their SDKs work with this service. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Service } from '../../service/contract.ts';
import { jsonContentType } from '../error-body.ts';
import { defaultModelAlias, RerankBody, Reranked } from '../schemas/rerank.ts';
import { addition } from '../schemas/addition.ts';
import { answers, scoreErrors } from './answers.ts';
import { rerankAnswer } from './representations.ts';

export function rerankRoute(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/rerank', {
      config: { reads: true },
      schema: {
        operationId: 'rerank',
        summary: 'Rank up to 50 texts of the request, in the shape that the SDKs of Cohere and Jina speak',
        description:
          'Scores as `/v1/score` does, with the same keys, limits and charges. It counts as one score. Nothing is stored. Every document has a result, also one without a token.',
        tags: ['ranking'],
        ...addition,
        body: RerankBody,
        response: answers({ 200: [Reranked, 'Results, best first.'] }, scoreErrors),
      },
      handler: async (request, reply) => {
        const { body, id, scope } = request;
        const { model, query } = body;
        const texts = body.documents.map((document) =>
          typeof document === 'string' ? document : document.text,
        );
        const score = {
          model: model === defaultModelAlias ? undefined : model,
          documentTokensMax: body.max_tokens_per_doc ?? undefined,
          query,
          documents: texts.map((text, at) => ({ docId: String(at), text, metadata: '{}' })),
          returnComponents: false,
        };
        const response = await scope.run((context) => service.score(context, score));
        const answer = await rerankAnswer(response, {
          id,
          model,
          texts,
          returnsTexts: body.return_documents === true,
          topN: body.top_n ?? texts.length,
        });
        return reply.type(jsonContentType).send(answer);
      },
    });
  };
}
