import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Service } from '../../service/contract.ts';
import { admissionErrors, answers } from './answers.ts';
import { jsonContentType } from '../error-body.ts';
import { UsageSummary } from '../schemas/usage.ts';
import { usageText } from './representations.ts';

export function usageRoutes(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/usage', {
      schema: {
        operationId: 'usage',
        summary: 'Usage of the current UTC calendar month, limits and remaining allowances',
        description: 'Token totals are decimal strings.',
        tags: ['usage'],
        response: answers({ 200: [UsageSummary, 'Usage and limits.'] }, admissionErrors),
      },
      handler: async (request, reply) => {
        const summary = await request.scope.run((context) => service.usage(context));
        return reply.type(jsonContentType).send(usageText(summary));
      },
    });
  };
}
