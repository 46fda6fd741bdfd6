/** Sends a request with fetch, and repeats it by the rules of `retry.ts`. No message has a key, query or text. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, ConnectionError, MaxsimdError, type RequestError } from './errors.ts';
import { connectMsMax, connectionProblem } from './connection.ts';
import { jsonText, requestTarget } from './encoding.ts';
import {
  isBroken,
  isRefusedForNow,
  LateError,
  maybeSlow,
  repeatDelayMs,
  repeatMsMax,
  type RetryBounds,
} from './retry.ts';
import type { ErrorDetail } from './types.ts';

export interface RequestOptions {
  /** Ends the request, or the wait for its next attempt, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit of one attempt. */
  readonly timeoutMs?: number;
  /** Sent as `x-request-id`: 1 to 128 of `A-Z a-z 0-9 . _ -`. */
  readonly requestId?: string;
  /** Called before the call resolves: for logs and measurements. */
  readonly onAnswer?: (answer: AnswerDetails) => void;
}

export interface AnswerDetails {
  readonly requestId: string | undefined;
  /** From sending to the last byte, of the attempt that was answered. */
  readonly latencyMs: number;
}

export interface TransportSettings extends RetryBounds {
  readonly url: string;
  readonly apiKey: string;
  readonly userAgent: string;
  readonly timeoutMs: number;
  readonly isPatient: boolean;
  readonly parse: (json: string) => unknown;
  readonly fetch: typeof fetch;
  readonly onRetry: ((error: RequestError, delayMs: number) => void) | undefined;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Segments of the path, such as `['v1', 'indexes', id]`. The client encodes them. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Becomes JSON. */
  readonly body?: object;
  /** JSON text that replaces `body`. */
  readonly json?: string;
  /** Repeating the request does no harm. */
  readonly isSafe: boolean;
  /** The service would refuse a second one, so it is safe to send it again after 503. */
  readonly isUnique?: boolean;
  /** Waits as long as the rate and concurrency limits ask. By default `waitsForLimits` of the client. */
  readonly isPatient?: boolean;
  /** Called before each wait, beside the client's own. */
  readonly onRetry?: (error: RequestError) => void;
  /**
   * An attempt that ended with 408, 502, 503, 504 or the time limit after more than this is not repeated. After the wait the
   * request rejects with a `LateError`.
   */
  readonly lateAfterMs?: number;
}

export class Transport {
  readonly #settings: TransportSettings;
  /** The request rate belongs to the tenant, so one refusal makes all requests of the client wait. */
  #pausedUntilMs = 0;
  #wasConnected = false;

  constructor(settings: TransportSettings) {
    this.#settings = settings;
  }

  async send<Answer>(request: ApiRequest, options: RequestOptions = {}): Promise<Answer> {
    const prepared = prepare(request, options);
    let tries = { attempts: 0, broken: 0, sinceMs: performance.now() };
    for (;;) {
      await this.#waitForPause(options.signal);
      const attemptedMs = performance.now();
      try {
        const answer = await this.#attempt(prepared, options);
        this.#wasConnected = true;
        return answer as Answer;
      } catch (error) {
        if (!(error instanceof ApiError || error instanceof ConnectionError)) throw error;
        this.#wasConnected ||= this.#tellsOfConnection(error, options);
        const nowMs = performance.now();
        const waits = (request.isPatient ?? this.#settings.isPatient) && isRefusedForNow(error);
        const attemptMs = nowMs - attemptedMs;
        const isLate = maybeSlow(error) && attemptMs > (request.lateAfterMs ?? Infinity);
        // The service is well, or it works on the request, so the bounds begin anew.
        if (waits || isLate) tries = { attempts: 0, broken: 0, sinceMs: nowMs };
        tries.attempts += 1;
        if (isBroken(error)) tries.broken += 1;
        const askedMs = repeatDelayMs(error, { ...request, ...tries }, Math.random);
        const attempt = { wasConnected: this.#wasConnected, attemptMs };
        const leftMs = repeatMsMax(this.#settings, attempt) - (nowMs - tries.sinceMs);
        // Other batches of an import end meanwhile, so it tries once more at the bound.
        const isCapped = request.isPatient === true && askedMs !== undefined && !waits && leftMs > 0;
        const delayMs = isCapped ? Math.min(askedMs, leftMs) : askedMs;
        if (delayMs === undefined || (!waits && delayMs > leftMs)) throw error;
        this.#settings.onRetry?.(error, delayMs);
        request.onRetry?.(error);
        if (isRateRefusal(error)) this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + delayMs);
        else await wait(delayMs, options.signal);
        if (isLate) throw new LateError(error);
      }
    }
  }

  /** An attempt shorter than the making of a connection may have ended before there was one. */
  #tellsOfConnection(error: RequestError, { timeoutMs = this.#settings.timeoutMs }: RequestOptions): boolean {
    if (error instanceof ApiError) return true;
    return error.code === 'timeout' ? timeoutMs > connectMsMax : error.maybeReceived;
  }

  async #waitForPause(signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const remainingMs = this.#pausedUntilMs - performance.now();
      if (remainingMs <= 0) return;
      await wait(remainingMs, signal);
    }
  }

  async #attempt(request: PreparedRequest, options: RequestOptions): Promise<unknown> {
    const { url, apiKey, userAgent, fetch, parse } = this.#settings;
    const timeoutMs = options.timeoutMs ?? this.#settings.timeoutMs;
    const timeout = AbortSignal.timeout(timeoutMs);
    const sentMs = performance.now();
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${url}${request.target}`, {
        method: request.method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          'user-agent': userAgent,
          ...request.headers,
        },
        ...(request.body === undefined ? {} : { body: request.body }),
        // The key goes to the address given, nowhere else.
        redirect: 'manual',
        signal: options.signal === undefined ? timeout : AbortSignal.any([options.signal, timeout]),
      });
      text = await response.text();
    } catch (error) {
      options.signal?.throwIfAborted();
      throw timeout.aborted
        ? new ConnectionError(`no answer from ${url} within ${timeoutMs / 1000} s`, {
            code: 'timeout',
            maybeReceived: true,
            cause: error,
          })
        : connectionError(url, error);
    }
    const latencyMs = performance.now() - sentMs;
    const body = response.ok ? parsed(text, parse) : undefined;
    if (body === undefined) throw apiError(response, text);
    options.onAnswer?.({ requestId: requestIdOf(response), latencyMs });
    return body;
  }
}

interface PreparedRequest {
  readonly method: ApiRequest['method'];
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** Makes the request that each attempt sends. Throws where no request can carry it. */
function prepare(request: ApiRequest, { requestId }: RequestOptions): PreparedRequest {
  const body = request.body === undefined ? request.json : jsonText(request.body);
  return {
    method: request.method,
    target: requestTarget(request.path, request.query),
    headers: {
      ...(requestId === undefined ? {} : { 'x-request-id': checkedRequestId(requestId) }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body,
  };
}

/** Ends with the signal's own reason, as the request does. */
async function wait(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(delayMs, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

function connectionError(url: string, error: unknown): ConnectionError {
  const { reason, isUnconnected } = connectionProblem(error);
  return new ConnectionError(`cannot reach ${url}: ${reason}`, {
    code: 'connection_failed',
    maybeReceived: !isUnconnected,
    cause: error,
  });
}

function requestIdOf(response: Response): string | undefined {
  return response.headers.get('x-request-id') ?? undefined;
}

/** The rate is the tenant's, so the other requests of the client wait too. A proxy may refuse without a code of ours. */
function isRateRefusal(error: RequestError): boolean {
  return isRefusedForNow(error) && error.code !== 'concurrency_limit_exceeded';
}

function apiError(response: Response, text: string): ApiError {
  const body: { readonly error?: Partial<ErrorDetail> } | undefined = parsed(text);
  const error = body?.error;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ApiError(
    error?.message ?? 'this is not an answer of the service: look at the address, and at proxies',
    {
      status: response.status,
      code: error?.code ?? 'unexpected_response',
      issues: error?.issues ?? [],
      requestId: requestIdOf(response),
      retryAfterSeconds: Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : undefined,
    },
  );
}

/** The object that the text is; `undefined` = it is none. */
function parsed(text: string, parse: (json: string) => unknown = JSON.parse): object | undefined {
  try {
    const value = parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The address without a trailing slash; throws on one that no request may go to. */
export function checkedUrl(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new MaxsimdError('`url` must be an http:// or https:// address');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new MaxsimdError('`url` takes no credentials, query or fragment');
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** fetch sends no other characters, or sends other bytes for them. */
export function checkedUserAgent(given: string): string {
  if (!/^[\x21-\x7e][\x20-\x7e]*$/.test(given))
    throw new MaxsimdError(
      '`userAgent` is empty, begins with a space, or holds characters that are no printable ASCII',
    );
  return given;
}

function checkedRequestId(given: string): string {
  if (!/^[\w.-]{1,128}$/.test(given))
    throw new MaxsimdError('`requestId` must be 1 to 128 of A-Z a-z 0-9 . _ -');
  return given;
}

/** fetch would quote a malformed header value in its error, and the value is a secret. */
export function checkedKey(given: string): string {
  if (!/^[\x21-\x7e]+$/.test(given))
    throw new MaxsimdError('`apiKey` is missing or holds characters that no key has');
  return given;
}
