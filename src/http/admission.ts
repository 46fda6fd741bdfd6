/**
 * What every `/v1` request passes before its body is read: authentication, suspension, rate, concurrency, in
 * this order (inside `Service.admit`); and the accounting of its answer.
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
    /** Which deadline holds for this route; `search` where none is named. */
    readonly deadline?: 'search' | 'upsert';
    /** It changes nothing although it is no GET. */
    readonly reads?: boolean;
  }
}

export function admitRequests(
  app: FastifyInstance,
  options: {
    readonly service: Service;
    readonly observer: RequestObserver;
    readonly timeouts: RouteTimeouts;
    /** By what a request is admitted. */
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
    // An unknown address is none whatever its body holds.
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
      // The work is done and the answer stands; a request too few in the ledger favours the customer.
      observer.failed(scope, error);
    }
  }
}

/** Whether the route that was asked for may change something. */
export function mayChange({ method, routeOptions }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && routeOptions.config.reads !== true;
}

export function unknownRoute(): ServiceError {
  return new ServiceError(
    'not_found',
    'there is nothing at this address with this method; /docs lists what there is',
  );
}
