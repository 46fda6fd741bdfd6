/**
 * Admits requests of tenants before their bodies are read. `Service.admit` checks authentication, suspension, rate and
 * concurrency, in this order. Counts each answered request.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError } from '../errors.ts';
import type { AdmittedRequest, RequestContext, Service } from '../service/contract.ts';
import { rateHeaders } from './error-answers.ts';
import type { RequestObserver } from './observation.ts';

/** Deadlines of the work, in milliseconds from the request's arrival. */
export interface RouteTimeouts {
  readonly searchMs: number;
  readonly upsertMs: number;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The deadline of this route; absent = `search`. */
    readonly deadline?: 'search' | 'upsert';
    /** The route changes nothing although its method is not GET. */
    readonly reads?: boolean;
  }
}

export function admitRequests(
  app: FastifyInstance,
  options: {
    readonly service: Service;
    readonly observer: RequestObserver;
    readonly timeouts: RouteTimeouts;
    readonly admit: (request: FastifyRequest) => Promise<AdmittedRequest>;
  },
): void {
  const { service, observer, timeouts, admit } = options;

  app.addHook('onRequest', async (request: FastifyRequest, reply: FastifyReply) => {
    const admitted = await admit(request);
    const { deadline } = request.routeOptions.config;
    request.scope.admit(admitted, deadline === 'upsert' ? timeouts.upsertMs : timeouts.searchMs);
    request.scope.onLeft((context) => count(request, context, (counted) => service.countLeft(counted)));
    reply.headers(rateHeaders(admitted.rate));
    // An unknown address is 404 whatever the body holds.
    if (request.is404) throw unknownRoute();
    if (admitted.access === 'read' && mayChange(request)) {
      throw new ServiceError('permission_denied', 'this API key may only read');
    }
  });

  app.addHook('onSend', async (request: FastifyRequest, reply: FastifyReply) => {
    const { scope } = request;
    if (scope.context === undefined || scope.clientGone || reply.statusCode === 429) return;
    await scope.hold(count(request, scope.context, (context) => service.countRequest(context)));
  });

  async function count(
    { scope }: FastifyRequest,
    context: RequestContext,
    record: (context: RequestContext) => Promise<void>,
  ): Promise<void> {
    try {
      await record(context);
    } catch (error) {
      // The work is done, so the answer stands. The customer pays for one request less.
      observer.failed(scope, error);
    }
  }
}

function mayChange({ method, routeOptions }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && routeOptions.config.reads !== true;
}

export function unknownRoute(): ServiceError {
  return new ServiceError('not_found', 'no route has this address and method; /docs lists all routes');
}
