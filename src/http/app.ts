/**
 * The part that the API and the admin API share: answers of the protocol, request ids, the life of a request, JSON bodies,
 * validation and the error body.
 */
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import Fastify from 'fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { ServiceError, invalid } from '../errors.ts';
import { cut } from '../service/repeated-names.ts';
import { nearestName } from '../input/settings.ts';
import { unknownRoute } from './admission.ts';
import { acceptJsonBodies } from './body/body.ts';
import { BodyRoom } from './body/body-room.ts';
import { answerErrors, answerFrameworkErrors } from './error-answers.ts';
import { protocolError, validationError } from './error-body.ts';
import { bodyBytesMax, largeBodiesBytesMax, pathParameterCharactersMax } from './limits.ts';
import { clientGoneStatus, unmatchedRoute, type RequestObserver } from './observation.ts';
import { ConnectionTurns } from './protocol/connection-turns.ts';
import { createListener, type HttpTimeouts, type TlsIdentity } from './protocol/listener.ts';
import { createClientErrorHandler, trackAnswer } from './protocol/protocol.ts';
import { requestIdHeader, requestIdOf } from './protocol/request-id.ts';
import { traceParentOf } from './protocol/trace-parent.ts';
import { bodyIsLeft, leaveUnread } from './protocol/unread-body.ts';
import { RequestScope } from './request-scope.ts';

export interface ListenerOptions {
  readonly observer: RequestObserver;
  readonly tls?: TlsIdentity;
  readonly trustProxy?: boolean;
  /** Further connections are closed at once; absent = no bound. */
  readonly connectionsMax?: number;
  /** Shared by listeners that have one bound together. */
  readonly openConnections?: Int32Array;
  /** Shared by listeners whose large bodies have one room; absent = a room of its own. */
  readonly room?: Pick<BodyRoom, 'open'>;
  /** Once aborted, new requests get 503 and connections close after their answer. The health routes still answer. */
  readonly drain?: AbortSignal;
}

declare module 'fastify' {
  interface FastifyRequest {
    scope: RequestScope;
  }
  interface FastifyContextConfig {
    readonly servesWhileDraining?: boolean;
  }
}

/** An app without routes. `drain` aborts once the owner drains or the server is closed. */
export function createApp(
  options: ListenerOptions & { readonly timeouts: HttpTimeouts; readonly bodyBytesMax: number },
): { readonly app: FastifyInstance; readonly drain: AbortSignal } {
  const { observer, timeouts } = options;
  const turns = new ConnectionTurns();
  const app: FastifyInstance = Fastify({
    // For `localhost` Fastify adds listeners of its own. Without this factory they would lack the protocol's answers.
    serverFactory: (handler) =>
      createListener(handler, {
        tls: options.tls,
        timeouts,
        observer,
        turns,
        connectionsMax: options.connectionsMax ?? Infinity,
        openConnections: options.openConnections,
      }),
    trustProxy: options.trustProxy ?? false,
    bodyLimit: options.bodyBytesMax,
    routerOptions: { maxParamLength: pathParameterCharactersMax },
    genReqId: (request) => requestIdOf(request.headers),
    // Fastify's answer has neither our body nor the request id. The draining hook below answers instead.
    return503OnClosing: false,
    clientErrorHandler: createClientErrorHandler(observer, turns),
    frameworkErrors: answerFrameworkErrors(observer),
  });

  const drain = drainSignal(app, options.drain);
  app.decorateRequest('scope', null as unknown as RequestScope);

  app.addHook('onRequest', (request, reply, done) => {
    reply.header(requestIdHeader, request.id);
    observer.started();
    const traceParent = traceParentOf(request.headers);
    request.scope = new RequestScope({ requestId: request.id, traceParent }, reply.raw, (scope) => {
      observer.ended(scope, {
        method: request.method,
        route: request.routeOptions.url ?? unmatchedRoute,
        status: scope.protocolStatus ?? (scope.clientGone ? clientGoneStatus : reply.statusCode),
      });
    });
    trackAnswer(request.raw, reply.raw, request.scope);
    leaveUnread(request.raw, reply.raw);
    if (drain.aborted && request.routeOptions.config.servesWhileDraining !== true) throw draining();
    assertOneHost(request.raw);
    done();
  });

  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.scope.isAdmitted) assertKnownParameters(request);
    done(null, payload);
  });

  app.addHook('onSend', (request, reply, _payload, done) => {
    // The time counts from the last byte that the client took. Once the answer is out, Node sets the time of idle
    // connections. `inject()` has no connection.
    if (request.raw.socket instanceof Socket) request.raw.socket.setTimeout(timeouts.answerMs);
    // A connection also closes if its request was running when the drain began, or if a long body stays unread.
    if (drain.aborted || bodyIsLeft(request.raw)) reply.header('connection', 'close');
    done();
  });

  acceptJsonBodies(app, {
    bytesMax: options.bodyBytesMax,
    timeoutMs: timeouts.bodyMs,
    room: options.room ?? largeBodyRoom(timeouts),
  });
  app.setValidatorCompiler<z.ZodType>(({ schema }) => (data) => {
    const result = schema.safeParse(data);
    return result.success ? { value: result.data } : { error: validationError(result.error) };
  });
  // src/http/routes/representations.ts makes the answers. The schemas only describe them, and a test compares both.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  answerErrors(app, observer);
  app.setNotFoundHandler(() => {
    throw unknownRoute();
  });
  return { app, drain };
}

export function largeBodyRoom({ bodyWaitMs, bodyPatienceMs }: HttpTimeouts): BodyRoom {
  return new BodyRoom({
    bytesMax: largeBodiesBytesMax,
    bodyBytesMax,
    waitMs: bodyWaitMs,
    patienceMs: bodyPatienceMs,
  });
}

function drainSignal(app: FastifyInstance, given: AbortSignal | undefined): AbortSignal {
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  return given === undefined ? closing.signal : AbortSignal.any([given, closing.signal]);
}

/** RFC 9112 section 3.2. Node would answer without our body, and would use the first of several. */
function assertOneHost({ httpVersion, rawHeaders }: IncomingMessage): void {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]!.toLowerCase() === 'host') hosts += 1;
  if (hosts > 1) throw protocolError(400, 'there is more than one Host header', 'malformed_http');
  if (hosts === 0 && httpVersion === '1.1')
    throw protocolError(400, 'the Host header is missing', 'malformed_http');
}

/** A parameter that no route reads may be a misspelt one, such as `expire_at`. */
function assertKnownParameters({ query, routeOptions }: FastifyRequest): void {
  const names = Object.keys(query as object);
  if (names.length === 0) return;
  const { querystring } = (routeOptions.schema ?? {}) as { readonly querystring?: z.ZodObject };
  const known = Object.keys(querystring?.shape ?? {});
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const near = nearestName(unknown, known);
  const hint = near === undefined ? '' : ` (did you mean ${near}?)`;
  throw invalid(String(cut(unknown)), `unknown parameter${hint}`, 'unrecognized_keys');
}

function draining(): ServiceError {
  return new ServiceError('service_unavailable', 'the service is shutting down', { retryAfterSeconds: 1 });
}
