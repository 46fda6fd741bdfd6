import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { SearchRequest, Service } from '../../service/contract.ts';
import { addition } from '../schemas/addition.ts';
import { answers, readErrors, scoreErrors } from './answers.ts';
import { jsonContentType } from '../error-body.ts';
import { IndexParams, documentInputs } from '../schemas/fields.ts';
import { QueryAnswers, QueryBody, Ranked, ScoreBody, SearchBody } from '../schemas/ranking.ts';
import { queryAnswer, rankedAnswer } from './representations.ts';

export const rankingRoutes = [searchRoutes, scoreRoute];

const searchErrors = [...readErrors, 'usage_limit_exceeded'] as const;

function searchRoutes(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/indexes/:index_id/search', {
      config: { reads: true, searches: true },
      schema: {
        operationId: 'search',
        summary: 'Find the best chunks for a query',
        description:
          'Returns references to chunks. The service does not store texts: load them from your own store by `doc_id`. `offset`, `where`, `group_by_document`, `exact`, `passage`, `match` and `fields` are additions.',
        tags: ['ranking'],
        params: IndexParams,
        body: SearchBody,
        response: answers({ 200: [Ranked, 'Results, best first.'] }, searchErrors),
      },
      handler: async (request, reply) => {
        const { body, params, scope } = request;
        const search = searchOf(body);
        const response = await scope.run((context) => service.search(context, params.index_id, search));
        return reply.type(jsonContentType).send(await rankedAnswer(response));
      },
    });

    app.post('/indexes/:index_id/query', {
      config: { reads: true, searches: true },
      schema: {
        operationId: 'query',
        summary: 'Run up to 32 searches in one request',
        description:
          'All searches see one snapshot of the index. Each counts as one search; the request counts once against the rate.',
        tags: ['ranking'],
        ...addition,
        params: IndexParams,
        body: QueryBody,
        response: answers({ 200: [QueryAnswers, 'The results of each search, best first.'] }, searchErrors),
      },
      handler: async (request, reply) => {
        const { body, params, scope } = request;
        const queries = body.queries.map(searchOf);
        const response = await scope.run((context) => service.query(context, params.index_id, queries));
        return reply.type(jsonContentType).send(await queryAnswer(response));
      },
    });
  };
}

function scoreRoute(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/score', {
      config: { reads: true },
      schema: {
        operationId: 'score',
        summary: 'Rank up to 50 documents of the request; nothing is stored',
        description: 'Returns one result per document, ranked by its best chunk. Only the usage is recorded.',
        tags: ['ranking'],
        body: ScoreBody,
        response: answers({ 200: [Ranked, 'Results, best first.'] }, scoreErrors),
      },
      handler: async (request, reply) => {
        const { body, scope } = request;
        const score = {
          query: body.query,
          documents: documentInputs(body.documents),
          returnComponents: body.return_components ?? false,
          minScore: body.min_score,
          passage: body.passage && { context: body.passage.context ?? 0 },
        };
        const response = await scope.run((context) => service.score(context, score));
        return reply.type(jsonContentType).send(await rankedAnswer(response));
      },
    });
  };
}

function searchOf(body: z.output<typeof SearchBody>): SearchRequest {
  return {
    query: body.query,
    returnComponents: body.return_components ?? false,
    topK: body.top_k,
    offset: body.offset,
    candidateK: body.candidate_k,
    filter: body.filter?.text,
    where: body.where?.text,
    groupByDocument: body.group_by_document,
    exact: body.exact,
    minScore: body.min_score,
    fields: body.fields,
    match: body.match,
    passage: body.passage && { from: body.passage.from, context: body.passage.context ?? 0 },
  };
}
