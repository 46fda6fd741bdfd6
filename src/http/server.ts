/**
 * The HTTP front end: JSON over HTTP/1.1 in front of a `Service`. It decides about the wire alone: names, limits, statuses,
 * headers and the OpenAPI document.
 *
 * Order of checks: draining, authentication, suspension, rate, concurrency, address, body, fields, existence.
 * Headers may take 10 s, the body 60 s. The route's deadline counts from the arrival of the request.
 */
import type { FastifyInstance } from 'fastify';
import type { Service } from '../service/contract.ts';
import { admitRequests, unknownRoute } from './admission.ts';
import { createApp, type ListenerOptions } from './app.ts';
import type { ConsolePage } from './console/page.ts';
import { consoleRoutes } from './console/routes.ts';
import { resolveIndexNames } from './index-names.ts';
import { bodyBytesMax } from './limits.ts';
import { defaultHttpTimeouts, type HttpTimeouts } from './protocol/listener.ts';
import { activityRoute, watchSearches } from './routes/activity.ts';
import { documentRoutes } from './routes/documents.ts';
import { healthRoutes } from './routes/health.ts';
import { rootRoute } from './routes/root.ts';
import { indexRoutes } from './routes/indexes.ts';
import { rankingRoutes } from './routes/ranking.ts';
import { rerankRoute } from './routes/rerank.ts';
import { usageRoutes } from './routes/usage.ts';
import { RecentActivity, type Activity } from './recent-activity.ts';
import { describeApi } from './schemas/openapi.ts';
import { serviceDocument } from './schemas/service-document.ts';

export interface HttpServerOptions extends ListenerOptions {
  readonly service: Service;
  readonly console?: ConsolePage;
  /** The name of this node in a cluster. */
  readonly node?: string;
  /** Absent = an activity of its own. */
  readonly activity?: Activity;
  /** Resolves while the other event loops of the process turn. `/healthz` waits for it. */
  readonly beat?: () => Promise<unknown>;
  readonly timeouts?: Partial<HttpTimeouts>;
}

/** Does not listen yet: call `inject()` or `listen()`. `close()` refuses new requests and waits for those in flight. */
export async function createHttpServer(options: HttpServerOptions): Promise<FastifyInstance> {
  const { service, observer } = options;
  const timeouts = { ...defaultHttpTimeouts, ...options.timeouts };
  const { app, drain } = createApp({ ...options, timeouts, bodyBytesMax });
  await describeApi(app, serviceDocument);
  await app.register(healthRoutes(service, drain, options.beat));
  await app.register(rootRoute(options.console !== undefined));
  const activity = options.activity ?? new RecentActivity();
  const activityOf = activityRoute(activity, options.node);
  const admitted = {
    '/v1': [
      ...indexRoutes,
      ...documentRoutes,
      ...rankingRoutes,
      rerankRoute('rerankV1'),
      usageRoutes,
      activityOf,
    ],
    '/v2': [rerankRoute('rerank')],
    '': [rerankRoute('rerankUnversioned')],
  };
  for (const [prefix, plugins] of Object.entries(admitted)) {
    await app.register(
      async (version) => {
        admitRequests(version, {
          service,
          observer,
          timeouts,
          admit: ({ headers }) => service.admit(headers.authorization),
        });
        resolveIndexNames(version, service);
        watchSearches(version, activity);
        // The app has its own, which admits nobody.
        if (prefix !== '') {
          version.setNotFoundHandler(() => {
            throw unknownRoute();
          });
        }
        for (const routes of plugins) await version.register(routes(service));
      },
      { prefix },
    );
  }
  if (options.console !== undefined) {
    const routes = consoleRoutes({
      page: options.console,
      service,
      observer,
      timeouts,
      activity,
      activityOf,
    });
    await app.register(routes, { prefix: '/console' });
  }
  await app.ready();
  return app;
}
