import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { UsageDay } from '../../catalog/contract.ts';
import type { Service } from '../../service/contract.ts';
import { addition } from '../schemas/addition.ts';
import { admissionErrors, answers } from './answers.ts';
import { jsonContentType } from '../error-body.ts';
import { dayRange, UsageDays, UsageDaysQuery, UsageSummary } from '../schemas/usage.ts';
import { usageText } from './representations.ts';

export const usageDaysDescription =
  'Days are in UTC, and 400 of them are kept. Usage that could not be written at once counts on the day on which it was written.';

export function usageRoutes(service: Service): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/usage', {
      schema: {
        operationId: 'usage',
        summary: 'Usage of this month, limits, and what remains',
        description: 'A month is a calendar month in UTC. Token totals are decimal strings.',
        tags: ['usage'],
        response: answers({ 200: [UsageSummary, 'Usage and limits.'] }, admissionErrors),
      },
      handler: async (request, reply) => {
        const summary = await request.scope.run((context) => service.usage(context));
        return reply.type(jsonContentType).send(usageText(summary));
      },
    });

    app.get('/usage/days', {
      schema: {
        operationId: 'usageDays',
        summary: 'Usage by day',
        description: usageDaysDescription,
        tags: ['usage'],
        ...addition,
        querystring: UsageDaysQuery,
        response: answers({ 200: [UsageDays, 'Days, oldest first.'] }, [
          ...admissionErrors,
          'validation_error',
        ]),
      },
      handler: async ({ query, scope }) => {
        const range = dayRange(query, Date.now());
        return usageDaysBody(await scope.run((context) => service.usageDays(context, range.from, range.to)));
      },
    });
  };
}

export function usageDaysBody(days: readonly UsageDay[]): z.output<typeof UsageDays> {
  const data = days.map((day) => ({
    day: day.day,
    input_tokens: String(day.inputTokens),
    requests: day.requests,
    document_upserts: day.documentUpserts,
    searches: day.searches,
    scores: day.scores,
  }));
  return { data };
}
