/** The searches of the last hour, and the hook that counts them. */
import type { FastifyInstance } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { jsonContentType } from '../error-body.ts';
import { activityMinutes, type Activity, type IndexActivity } from '../recent-activity.ts';
import { Activity as ActivitySchema } from '../schemas/activity.ts';
import { addition } from '../schemas/addition.ts';
import { nameIn } from '../schemas/fields.ts';
import { admissionErrors, answers } from './answers.ts';
import { activityAnswer, timestamp } from './representations.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route searches the index in its address. */
    readonly searches?: boolean;
  }
}

export function watchSearches(app: FastifyInstance, activity: Activity): void {
  app.addHook('onResponse', ({ scope, params, routeOptions }, { statusCode }, done) => {
    done();
    const { tenantId } = scope;
    if (routeOptions.config.searches !== true || tenantId === undefined || scope.clientGone) return;
    const { index_id: indexId } = params as { readonly index_id: string };
    // The request ended before its name was resolved.
    if (nameIn(indexId) !== undefined) return;
    activity.note({ tenantId, indexId: indexId.toLowerCase(), status: statusCode, ms: scope.elapsedMs() });
  });
}

/** `node`: the name of this node in a cluster. */
export function activityRoute(activity: Activity, node: string | undefined) {
  return (): FastifyPluginAsyncZod => async (app) => {
    app.get('/activity', {
      schema: {
        operationId: 'activity',
        summary: `Searches of the last ${activityMinutes} minutes, by index and minute`,
        description: `Counts are kept in memory, for the 1,000 indexes of the process that were searched last. They begin with its start. In a cluster each node counts its own.`,
        tags: ['usage'],
        ...addition,
        response: answers({ 200: [ActivitySchema, 'The activity of your indexes.'] }, admissionErrors),
      },
      handler: ({ scope }, reply) =>
        scope.run(async ({ tenant }) => {
          const from = timestamp(await activity.fromMs());
          const indexes: [id: string, activity: IndexActivity][] = [];
          for (const id of await activity.indexesOf(tenant.id))
            indexes.push([id, await activity.of(tenant.id, id)]);
          const head = `{"node":${JSON.stringify(node ?? null)},"from":"${from}"`;
          return reply.type(jsonContentType).send(await activityAnswer(head, indexes));
        }),
    });
  };
}
