/**
 * `/console`: a page on which people work with their indexes. The page exchanges an API key for a session. The session is in a
 * cookie that scripts cannot read, and the page keeps no key. With the session it may do under `/console/v1` what the key may.
 * These requests count, and are limited, like any request of the tenant.
 *
 * Against cross-site requests the cookie is `SameSite=Strict`, and a request that a browser marks as coming from another
 * origin is refused (Fetch Metadata, w3.org/TR/fetch-metadata). Browsers that send no such marks ask before they send JSON, or
 * a method other than GET and POST, to another origin. The service does not answer them.
 */
import type { FastifyInstance, FastifyPluginAsync, FastifyReply } from 'fastify';
import { ServiceError } from '../../errors.ts';
import type { Service } from '../../service/contract.ts';
import { sessionMs } from '../../service/session.ts';
import type { StageTimings } from '../../service/stage-timings.ts';
import { admitRequests, unknownRoute, type RouteTimeouts } from '../admission.ts';
import type { RequestObserver } from '../observation.ts';
import type { RecentActivity } from '../recent-activity.ts';
import { watchSearches, type activityRoute } from '../routes/activity.ts';
import { documentRoutes } from '../routes/documents.ts';
import { indexRoutes } from '../routes/indexes.ts';
import { rankingRoutes } from '../routes/ranking.ts';
import { usageRoutes } from '../routes/usage.ts';
import { insightRoutes } from './insight.ts';
import type { ConsolePage, PageFile } from './page.ts';
import { forgetSession, isSecure, keepSession, sessionIn } from './session-cookie.ts';

export interface ConsoleOptions {
  readonly page: ConsolePage;
  readonly service: Service;
  readonly observer: RequestObserver;
  readonly timeouts: RouteTimeouts;
  readonly activity: RecentActivity;
  readonly activityOf: ReturnType<typeof activityRoute>;
}

/** Half a year in seconds, without subdomains, which may belong to others (RFC 6797). */
const strictTransport = 'max-age=15552000';
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; connect-src 'self'; img-src 'self'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

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
    app.addHook('onRequest', async (request, reply) => {
      reply.header('cache-control', 'no-store');
      if (isSecure(request)) reply.header('strict-transport-security', strictTransport);
      const { headers } = request;
      const site = headers['sec-fetch-site'];
      const isNavigation = request.method === 'GET' && headers['sec-fetch-mode'] === 'navigate';
      if (site !== undefined && site !== 'same-origin' && !isNavigation) throw foreignOrigin();
    });
    servePage(app, page);

    await app.register(async (signIn) => {
      admitRequests(signIn, {
        service,
        observer,
        timeouts,
        admit: ({ headers }) => service.admit(headers.authorization),
      });
      signIn.post('/session', { config: { reads: true } }, async (request, reply) => {
        const session = await service.openSession(request.headers.authorization);
        keepSession(request, reply, session, sessionMs / 1000);
        return reply.code(204).send();
      });
    });
    app.delete('/session', async (request, reply) => {
      await service.endSession(sessionIn(request));
      forgetSession(request, reply);
      return reply.code(204).send();
    });

    await app.register(
      async (v1) => {
        admitRequests(v1, {
          service,
          observer,
          timeouts,
          admit: (request) => service.admitSession(sessionIn(request)),
        });
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

function servePage(app: FastifyInstance, page: ConsolePage): void {
  const send = (file: PageFile) => async (_request: unknown, reply: FastifyReply) =>
    reply.headers(pageHeaders).type(file.type).send(file.bytes);
  for (const [name, file] of page) {
    app.get(name === 'index.html' ? '/' : `/${name}`, send(file));
  }
}

/** The stages so far, in milliseconds (w3.org/TR/server-timing). */
function serverTiming(timings: StageTimings): string {
  return timings
    .entries()
    .map(([stage, { ms }]) => `${stage};dur=${ms.toFixed(3)}`)
    .join(', ');
}

function foreignOrigin(): ServiceError {
  return new ServiceError('not_found', 'the console answers only its own page');
}
