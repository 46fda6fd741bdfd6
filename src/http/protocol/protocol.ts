/**
 * Answers to failures below the router: malformed HTTP, slow headers, CONNECT and unknown expectations. Node's own answers
 * lack our body and `x-request-id`.
 */
import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ServiceError } from '../../errors.ts';
import type { ConnectionTurns } from './connection-turns.ts';
import { errorBody, jsonContentType, protocolError } from '../error-body.ts';
import { newRequestId, requestIdHeader, requestIdOf } from './request-id.ts';
import type { RequestScope } from '../request-scope.ts';
import { endUnread, endUnreadBehind } from './unread-body.ts';

export interface ProtocolObserver {
  protocolError(requestId: string, error: ServiceError): void;
  /** A connection above the bound was closed at once. */
  connectionRefused(): void;
}

/** The request of a socket that is being answered. No other answer may be written into its answer. */
const answering = new WeakMap<
  Duplex,
  { request: IncomingMessage; response: ServerResponse; scope: RequestScope }
>();

export function trackAnswer(request: IncomingMessage, response: ServerResponse, scope: RequestScope): void {
  answering.set(request.socket, { request, response, scope });
}

export function createClientErrorHandler(observer: ProtocolObserver, turns: ConnectionTurns) {
  const answered = new WeakSet<Duplex>();
  return (error: NodeJS.ErrnoException, socket: Duplex): void => {
    // The event comes again with more bad bytes.
    if (answered.has(socket)) return;
    answered.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();

    const failure = clientError(error);
    const answerAlone = (): void => {
      const requestId = newRequestId();
      observer.protocolError(requestId, failure);
      answer(socket, requestId, failure);
    };
    const current = answering.get(socket);
    if (current !== undefined && !current.request.complete) {
      // The body of the current request is bad. So the answer is to that request, unless it has begun one.
      const { response, scope } = current;
      if (response.headersSent) return void socket.destroy();
      scope.answeredBelow(failure);
      return answer(socket, scope.requestId, failure);
    }
    // The bad bytes follow whole requests, whose answers go out first.
    turns.afterLast(socket, answerAlone);
  };
}

export function answerProtocolEvents(
  server: Server,
  observer: ProtocolObserver,
  turns: ConnectionTurns,
): void {
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    const error = protocolError(400, 'CONNECT is not supported', 'unsupported_method');
    const requestId = requestIdOf(request.headers);
    observer.protocolError(requestId, error);
    answer(socket, requestId, error);
  });
  const refuseExpectation = turns.inTurn((request, response) => {
    endUnreadBehind(request);
    const error = protocolError(
      417,
      'the only expectation supported is 100-continue',
      'unsupported_expectation',
    );
    const requestId = requestIdOf(request.headers);
    observer.protocolError(requestId, error);
    response.writeHead(417, { ...headersOf(error, requestId) }).end(errorBody(error));
  });
  server.on('checkExpectation', refuseExpectation);
  // "100 Continue" is sent once the body is wanted. The client of a refused request never sends its body.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    awaitingContinue.set(request, response);
    server.emit('request', request, response);
  });
}

const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>();

export function continueIfExpected(request: IncomingMessage): void {
  awaitingContinue.get(request)?.writeContinue();
}

/** Node's parser and timeout errors, by code; see `llhttp` and `lib/_http_server.js`. */
function clientError(error: NodeJS.ErrnoException): ServiceError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return protocolError(408, 'the request did not arrive in time', 'timeout');
    case 'HPE_HEADER_OVERFLOW':
      return protocolError(431, 'the request header is too large', 'too_big');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return protocolError(413, 'the chunk extensions are too large', 'too_big');
    default:
      return protocolError(400, 'malformed HTTP', 'malformed_http');
  }
}

function headersOf(error: ServiceError, requestId: string): Record<string, string | number> {
  return {
    [requestIdHeader]: requestId,
    'content-type': jsonContentType,
    'content-length': Buffer.byteLength(errorBody(error)),
    connection: 'close',
  };
}

function answer(socket: Duplex, requestId: string, error: ServiceError): void {
  if (!socket.writable) return void socket.destroy();
  const head = Object.entries(headersOf(error, requestId)).map(([name, value]) => `${name}: ${value}\r\n`);
  endUnread(
    socket,
    `HTTP/1.1 ${error.httpStatus} ${STATUS_CODES[error.httpStatus]}\r\n${head.join('')}\r\n${errorBody(error)}`,
  );
}
