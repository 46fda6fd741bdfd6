/**
 * Answers requests of the protocol over HTTP (streamable HTTP without sessions or streams). Anybody may reach the listener.
 * So the header is looked at first, then the service is asked whether it knows the key, and only then is the body read. A
 * refusal is a status with an error of JSON-RPC. A call that the service refuses is a result with `isError`.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { fetchFor } from '../../../clients/typescript/src/connection.ts';
import { ApiError, ConnectionError } from '../../../clients/typescript/src/errors.ts';
import { ServiceError } from '../../errors.ts';
import { BodyRoom } from '../../http/body/body-room.ts';
import { gather, type GatheredBody } from '../../http/body/gather.ts';
import { SmallPieces } from '../../http/body/small-pieces.ts';
import type { HttpTimeouts } from '../../http/protocol/listener.ts';
import { continueIfExpected } from '../../http/protocol/protocol.ts';
import { leaveUnread, readOn } from '../../http/protocol/unread-body.ts';
import { clientOf, type Endpoint } from '../client.ts';
import { messageOf } from '../failure.ts';
import { parseGivenJson, RepeatedNameError } from '../json.ts';
import { CallerKeys } from './caller-keys.ts';
import { toolServer, type Offer } from './tool-server.ts';

/** Time for attempts of a call while the service is away. Limits are reported at once, and the agent decides. */
export const retryMsMax = 10_000;
export const path = '/mcp';
const bodyBytesMax = 4 * 1024 * 1024;
/** Bytes of all large bodies that are read, parsed or worked on. */
const largeBodiesBytesMax = 64 * 1024 * 1024;

const preflightHeaders = {
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
  'access-control-max-age': '7200',
};
const keyWanted = { 'www-authenticate': 'Bearer' };

export interface HttpCallersOptions {
  readonly service: Omit<Endpoint, 'key'>;
  readonly offer: Offer;
  /** Origins of web pages that may call. */
  readonly origins: readonly string[];
  readonly timeouts: HttpTimeouts;
}

class Refusal extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

export class HttpCallers {
  readonly #options: HttpCallersOptions;
  readonly #send: typeof fetch;
  readonly #keys = new CallerKeys();
  readonly #smallPieces = new SmallPieces();
  readonly #room: BodyRoom;

  constructor(options: HttpCallersOptions) {
    this.#options = options;
    this.#send = fetchFor(options.service.url);
    const { bodyWaitMs: waitMs, bodyPatienceMs: patienceMs } = options.timeouts;
    this.#room = new BodyRoom({ bytesMax: largeBodiesBytesMax, bodyBytesMax, waitMs, patienceMs });
  }

  /** `onKnown` is called once the service knows the caller. */
  async answer(request: IncomingMessage, response: ServerResponse, onKnown: () => void): Promise<void> {
    leaveUnread(request, response);
    try {
      allowOrigin(request, response, this.#options.origins);
      assertAddress(request);
      if (isPreflight(request)) return void response.writeHead(204, preflightHeaders).end();
      await this.#call(keyOf(request), request, response, onKnown);
    } catch (error) {
      refuse(response, refusalOf(error));
    }
  }

  async #call(
    key: string,
    request: IncomingMessage,
    response: ServerResponse,
    onKnown: () => void,
  ): Promise<void> {
    const { service, offer } = this.#options;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const client = clientOf({ ...service, key }, retryMsMax, { waitsForLimits: false, fetch: this.#send });
    await this.#keys.check(key, client, gone.signal);
    onKnown();
    const { bytes, leave } = await this.#body(key, request);
    response.once('close', leave);
    const server = toolServer(client, offer, publicMessage);
    // Ends the calls of a caller who has gone.
    gone.signal.addEventListener('abort', () => void server.close());
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    const answer = await transport.handleRequest(withoutBody(request), { parsedBody: parsed(bytes) });
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  }

  async #body(key: string, request: IncomingMessage): Promise<GatheredBody> {
    const tooLarge = (): Refusal => new Refusal(413, `the body must have at most ${bodyBytesMax} bytes`);
    if (Number(request.headers['content-length'] ?? 0) > bodyBytesMax) throw tooLarge();
    continueIfExpected(request);
    readOn(request);
    return gather(request, {
      bytesMax: bodyBytesMax,
      timeoutMs: this.#options.timeouts.bodyMs,
      held: request.socket,
      openPlace: (lose) => this.#room.open(key, lose),
      smallPieces: this.#smallPieces,
      errors: {
        tooLarge,
        late: () => new Refusal(408, 'the body did not arrive in time'),
        broken: () => new Refusal(400, 'the caller has gone'),
      },
    });
  }
}

/** A page of another host may have this one's address (DNS rebinding). Browsers name the page, programs name none. */
function allowOrigin(
  { headers: { origin } }: IncomingMessage,
  response: ServerResponse,
  origins: readonly string[],
): void {
  if (origin === undefined) return;
  if (!origins.includes(origin))
    throw new Refusal(403, `the origin ${origin} is not allowed (--allow-origin)`);
  response.setHeader('access-control-allow-origin', origin).setHeader('vary', 'origin');
}

function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined;
}

function assertAddress(request: IncomingMessage): void {
  if (URL.parse(request.url ?? '', 'http://host')?.pathname !== path)
    throw new Refusal(404, `the address is ${path}`);
  // Without sessions there is no stream to get and nothing to delete.
  if (request.method !== 'POST' && !isPreflight(request))
    throw new Refusal(405, 'the method is POST', { allow: 'POST' });
}

function keyOf({ headers: { authorization } }: IncomingMessage): string {
  const key = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1];
  if (key === undefined) throw new Refusal(401, 'an API key is needed: Authorization: Bearer KEY', keyWanted);
  return key;
}

/** The request as the transport wants it. Answers are JSON alone, also for a caller who takes nothing else. */
function withoutBody({ headers }: IncomingMessage): Request {
  const { 'content-type': type, 'mcp-protocol-version': version } = headers;
  return new Request(`http://host${path}`, {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      ...(type !== undefined && { 'content-type': type }),
      ...(typeof version === 'string' && { 'mcp-protocol-version': version }),
    },
  });
}

function parsed(bytes: Buffer): unknown {
  try {
    if (isUtf8(bytes)) return parseGivenJson(bytes.toString());
  } catch (error) {
    // Every other message quotes the text.
    if (error instanceof RepeatedNameError) throw new Refusal(400, error.message);
  }
  throw new Refusal(400, 'the body is not JSON in UTF-8');
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof ServiceError) return new Refusal(error.httpStatus, error.message);
  const isWrongKey = error instanceof ApiError && error.status === 401;
  return new Refusal(isWrongKey ? 401 : 503, publicMessage(error), isWrongKey ? keyWanted : {});
}

/** Without the address of the service, which may be an inner one. `--verbose` reports it to the operator. */
function publicMessage(error: unknown): string {
  if (!(error instanceof ConnectionError)) return messageOf(error);
  return error.code === 'timeout' ? 'the service did not answer in time' : 'the service cannot be reached';
}

function refuse(response: ServerResponse, { status, message, headers }: Refusal): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close', ...headers });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null }));
}
