/**
 * `/console`: a page on which people work with their indexes. The page exchanges an API key for a session. The session is in a
 * cookie that scripts cannot read, and the page keeps no key. With the session it may do under `/console/v1` what the key may.
 * These requests count, and are limited, like any request of the tenant.
 */
import type { FastifyPluginAsync } from 'fastify';
import type { Service } from '../../service/contract.ts';
import { sessionMs } from '../../service/session.ts';
import type { StageTimings } from '../../service/stage-timings.ts';
import { admitRequests, unknownRoute, type RouteTimeouts } from '../admission.ts';
import { resolveIndexNames } from '../index-names.ts';
import type { RequestObserver } from '../observation.ts';
import type { Activity } from '../recent-activity.ts';
import { watchSearches, type activityRoute } from '../routes/activity.ts';
import { documentRoutes } from '../routes/documents.ts';
import { indexRoutes } from '../routes/indexes.ts';
import { rankingRoutes } from '../routes/ranking.ts';
import { usageRoutes } from '../routes/usage.ts';
import { insightRoutes } from './insight.ts';
import { servePage, type ConsolePage } from './page.ts';
import { consoleCookie, forgetSession, keepSession, sessionIn } from './session-cookie.ts';

export interface ConsoleOptions {
  readonly page: ConsolePage;
  readonly service: Service;
  readonly observer: RequestObserver;
  readonly timeouts: RouteTimeouts;
  readonly activity: Activity;
  readonly activityOf: ReturnType<typeof activityRoute>;
}

export function consoleRoutes(options: ConsoleOptions): FastifyPluginAsync {
  const { page, service, observer, timeouts, activity, activityOf } = options;
  const allRoutes = [
    ...indexRoutes,
    ...documentRoutes,
    ...rankingRoutes,
    usageRoutes,
    activityOf,
    insightRoutes,
  ];
  return async (app) => {
    servePage(app, page, 'tenants');

    await app.register(async (signIn) => {
      admitRequests(signIn, {
        service,
        observer,
        timeouts,
        admit: ({ headers }) => service.admit(headers.authorization),
      });
      signIn.post('/session', { config: { reads: true } }, async (request, reply) => {
        const session = await service.openSession(request.headers.authorization);
        keepSession(consoleCookie, request, reply, { session, seconds: sessionMs / 1000 });
        return reply.code(204).send();
      });
    });
    app.delete('/session', async (request, reply) => {
      await service.endSession(sessionIn(consoleCookie, request));
      forgetSession(consoleCookie, request, reply);
      return reply.code(204).send();
    });

    await app.register(
      async (v1) => {
        admitRequests(v1, {
          service,
          observer,
          timeouts,
          admit: (request) => service.admitSession(sessionIn(consoleCookie, request)),
        });
        resolveIndexNames(v1, service);
        watchSearches(v1, activity);
        v1.addHook('onSend', async ({ scope }, reply) => {
          reply.header('server-timing', serverTiming(scope.timings));
        });
        v1.setNotFoundHandler(() => {
          throw unknownRoute();
        });
        for (const routes of allRoutes) await v1.register(routes(service));
      },
      { prefix: '/v1' },
    );
  };
}

/** The stages so far, in milliseconds (w3.org/TR/server-timing). */
function serverTiming(timings: StageTimings): string {
  return Array.from(timings.entries(), ([stage, { ms }]) => `${stage};dur=${ms.toFixed(3)}`).join(', ');
}
