/** One request over fetch, repeated by the rules of `retry.ts`. No key, query or text goes into a message. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, ConnectionError, MaxsimdError } from './errors.ts';
import { connectMsMax, connectionProblem } from './connection.ts';
import { jsonText, requestTarget } from './encoding.ts';
import { isRefusedForNow, repeatDelayMs, repeatMsMax } from './retry.ts';
import type { ErrorDetail } from './types.ts';

export interface RequestOptions {
  /** Ends the request, and the waiting for its next attempt, with the signal's reason. */
  readonly signal?: AbortSignal;
  /** For one attempt. */
  readonly timeoutMs?: number;
  /** Sent as `x-request-id`: 1 to 128 of `A-Z a-z 0-9 . _ -`. */
  readonly requestId?: string;
}

export interface TransportSettings {
  readonly url: string;
  readonly apiKey: string;
  readonly userAgent: string;
  readonly timeoutMs: number;
  /** `undefined`: by default. */
  readonly retryMsMax: number | undefined;
  readonly fetch: typeof fetch;
  readonly onRetry: ((error: Error, delayMs: number) => void) | undefined;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Not yet encoded: `requestTarget` makes a path of them. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Becomes JSON. */
  readonly body?: object;
  /** JSON text, in the place of `body`. */
  readonly json?: string;
  /** Whether doing it twice is as good as doing it once. */
  readonly isSafe: boolean;
  /** Whether a second one would be refused once the first was done; then it is sent again after 503. */
  readonly isUnique?: boolean;
  /** Waits for as long as the rate and concurrency limits ask; otherwise within `retryMsMax`. */
  readonly isPatient?: boolean;
  /** Called before each wait, beside the client's own. */
  readonly onRetry?: (error: Error) => void;
}

export class Transport {
  readonly #settings: TransportSettings;
  /** The request rate is the tenant's: what one request learns holds for all. */
  #pausedUntilMs = 0;
  #wasConnected = false;

  constructor(settings: TransportSettings) {
    this.#settings = settings;
  }

  async send<Answer>(request: ApiRequest, options: RequestOptions = {}): Promise<Answer> {
    const prepared = prepare(request, options);
    const startedMs = performance.now();
    for (let attempts = 1; ; attempts += 1) {
      await this.#waitForPause(options.signal);
      const attemptedMs = performance.now();
      try {
        const answer = await this.#attempt(prepared, options);
        this.#wasConnected = true;
        return answer as Answer;
      } catch (error) {
        this.#wasConnected ||= this.#tellsOfConnection(error, options);
        const delayMs = repeatDelayMs(error, { ...request, attempts }, Math.random);
        const waits = request.isPatient === true && isRefusedForNow(error);
        const nowMs = performance.now();
        const elapsedMs = nowMs - startedMs;
        const retryMsMax =
          this.#settings.retryMsMax ??
          repeatMsMax({ wasConnected: this.#wasConnected, attemptMs: nowMs - attemptedMs });
        if (delayMs === undefined || (!waits && elapsedMs + delayMs > retryMsMax)) throw error;
        this.#settings.onRetry?.(error as Error, delayMs);
        request.onRetry?.(error as Error);
        if (error instanceof ApiError && error.code === 'rate_limit_exceeded')
          this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + delayMs);
        else await wait(delayMs, options.signal);
      }
    }
  }

  /** An attempt shorter than the making of a connection may have ended before there was one. */
  #tellsOfConnection(error: unknown, { timeoutMs = this.#settings.timeoutMs }: RequestOptions): boolean {
    if (error instanceof ApiError) return true;
    if (!(error instanceof ConnectionError)) return false;
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
    const { url, apiKey, userAgent, fetch } = this.#settings;
    const timeoutMs = options.timeoutMs ?? this.#settings.timeoutMs;
    const timeout = AbortSignal.timeout(timeoutMs);
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
    if (!response.ok) throw apiError(response, text);
    const body = parsed(text);
    if (body === undefined) throw apiError(response, text);
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

function apiError(response: Response, text: string): ApiError {
  const body: { readonly error?: Partial<ErrorDetail> } | undefined = parsed(text);
  const error = body?.error;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ApiError(error?.message ?? 'this is not an answer of the service', {
    status: response.status,
    code: error?.code ?? 'unexpected_response',
    issues: error?.issues ?? [],
    requestId: response.headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : undefined,
  });
}

/** The object that the text is; `undefined` = it is none. */
function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
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
