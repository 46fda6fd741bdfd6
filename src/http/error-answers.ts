/** Failures become answers here: one handler for the routes, one for requests that Fastify refuses before routing. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError, type RateState } from '../errors.ts';
import { fromSystem } from '../system-errors.ts';
import { errorBody, internalError, jsonContentType, protocolError } from './error-body.ts';
import type { RequestObserver } from './observation.ts';
import { requestIdHeader, requestIdOf } from './protocol/request-id.ts';
import { bodyIsLeft } from './protocol/unread-body.ts';
import { ClientGoneError } from './request-scope.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Fields beside `error` in the errors of this route. `body`: the body of the request, if it was read. */
    readonly besideErrors?: (error: ServiceError, body: unknown) => object;
  }
}

export function answerErrors(app: FastifyInstance, observer: RequestObserver): void {
  // This handler must not fail, whatever was thrown: Fastify's fall-back has another body.
  app.setErrorHandler((error: unknown, request, reply) => {
    const { scope } = request;
    // The client is gone. A request that broke off fails before its response is closed.
    if (scope.clientGone || error instanceof ClientGoneError) {
      if (isDefect(error)) observer.failed(scope, error);
      return reply.hijack();
    }
    const answer = operatingError(error);
    if (answer.code === 'internal_error') observer.failed(scope, error);
    else if (answer.code === 'service_unavailable' && answer.cause !== undefined)
      observer.unavailable(scope, answer);
    scope.errorCode = answer.code;
    scope.refusedTenantId = answer.tenantId;
    // Fastify closes the connection after every failed body. It can still be used unless the body never came.
    if (answer.httpStatus === 408) reply.header('connection', 'close');
    else reply.removeHeader('connection');
    return reply
      .code(answer.httpStatus)
      .headers(errorHeaders(answer))
      .type(jsonContentType)
      .send(errorBody(answer, request.routeOptions.config.besideErrors?.(answer, request.body)));
  });
}

/** For addresses that do not decode (400) and parameters longer than any legal id (414). No hook has run yet. */
export function answerFrameworkErrors(observer: RequestObserver) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const answer =
      error.code === 'FST_ERR_MAX_PARAM_LENGTH'
        ? protocolError(414, 'the path is too long', 'too_big')
        : protocolError(400, 'the path is not valid percent-encoding', 'malformed_http');
    const requestId = requestIdOf(request.raw.headers);
    observer.protocolError(requestId, answer);
    const body = errorBody(answer);
    reply.raw
      .writeHead(answer.httpStatus, {
        [requestIdHeader]: requestId,
        'content-type': jsonContentType,
        'content-length': Buffer.byteLength(body),
        ...(bodyIsLeft(request.raw) ? { connection: 'close' } : {}),
      })
      .end(body);
  };
}

function operatingError(thrown: unknown): ServiceError {
  const error = fromSystem(thrown);
  if (error instanceof ServiceError) {
    // The message of a defect goes to the log only.
    return error.code === 'internal_error' ? internalError(error) : error;
  }
  if (error instanceof Error && 'statusCode' in error && 'code' in error) {
    const { code, statusCode } = error;
    if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
      return protocolError(415, 'the body must be application/json', 'unsupported_media_type');
    }
    if (String(code).startsWith('FST_') && Number(statusCode) >= 400 && Number(statusCode) < 500) {
      return protocolError(Number(statusCode), 'the request cannot be processed', 'malformed_http');
    }
  }
  return internalError(error);
}

/** An abort is no defect, whatever its name is, and an operating error is none. */
function isDefect(error: unknown): boolean {
  if (error instanceof ClientGoneError || error instanceof ServiceError) return false;
  return !(error instanceof Error && error.name === 'AbortError');
}

/** Headers of every answer to a request whose rate was checked. */
export function rateHeaders({ limit, remaining, resetSeconds }: RateState): Record<string, number> {
  return {
    'ratelimit-limit': limit,
    'ratelimit-remaining': remaining,
    'ratelimit-reset': Math.ceil(resetSeconds),
  };
}

function errorHeaders(error: ServiceError): Record<string, string | number> {
  switch (error.httpStatus) {
    case 401:
      // RFC 9110 section 15.5.2: a 401 names its scheme.
      return { 'www-authenticate': 'Bearer' };
    case 415:
      // RFC 9110 section 12.5.3: the encoding that is accepted.
      return { 'accept-encoding': 'gzip' };
    case 429:
      return {
        'retry-after': error.retryAfterSeconds ?? 1,
        ...(error.rate === undefined ? {} : rateHeaders(error.rate)),
      };
    default:
      return error.retryAfterSeconds === undefined ? {} : { 'retry-after': error.retryAfterSeconds };
  }
}
