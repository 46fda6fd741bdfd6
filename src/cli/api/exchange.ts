/**
 * One request, one answer, over the built-in fetch (which keeps connections alive). Never puts the key or
 * a body into a message.
 */
import { isObject, parseJson } from '../json.ts';
import type { Issue } from '../../errors.ts';
import { connectMsMax, connectionProblem, fetchFor } from './connection.ts';
import { ApiFailure, kindOf } from './failure.ts';
import type { Endpoint } from './endpoint.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** From the base address, with the leading slash. */
  readonly path: string;
  /** JSON text. */
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

export interface Answer {
  readonly body: unknown;
  /** From sending to the last byte of the answer, of this one attempt. */
  readonly latencyMs: number;
}

/** Rejects with an `ApiFailure`, or with the signal's reason when the caller gave up. */
export type Exchange = (request: ApiRequest) => Promise<Answer>;

/** Throws a usage error where the environment names a proxy that is none. */
export function exchangeWith(endpoint: Endpoint): Exchange {
  const fetchOnce = fetchFor(endpoint.url);
  return (request) => exchange(endpoint, fetchOnce, request);
}

async function exchange(endpoint: Endpoint, fetchOnce: typeof fetch, request: ApiRequest): Promise<Answer> {
  const timeout = AbortSignal.timeout(endpoint.timeoutMs);
  const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
  const started = performance.now();
  let response: Response;
  let text: string;
  try {
    response = await fetchOnce(`${endpoint.url}${request.path}`, {
      method: request.method,
      headers: {
        authorization: `Bearer ${endpoint.key}`,
        ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(request.body === undefined ? {} : { body: request.body }),
      // The key goes to the address given, nowhere else.
      redirect: 'manual',
      signal,
    });
    text = await response.text();
  } catch (error) {
    request.signal?.throwIfAborted();
    throw timeout.aborted ? timedOut(endpoint, error) : unreached(endpoint, error);
  }
  const latencyMs = performance.now() - started;
  if (!response.ok) throw failureOf(response, text);
  return { body: parseBody(response, text), latencyMs };
}

function timedOut({ url, timeoutMs }: Endpoint, cause: unknown): ApiFailure {
  return new ApiFailure(`no answer from ${url} within ${timeoutMs / 1000} s`, {
    kind: 'unavailable',
    code: 'timeout',
    // It may have ended before there was a connection.
    isUnconnected: timeoutMs <= connectMsMax,
    cause,
  });
}

function unreached({ url }: Endpoint, cause: unknown): ApiFailure {
  const { reason, isUnconnected } = connectionProblem(cause);
  return new ApiFailure(`cannot reach ${url}: ${reason}`, {
    kind: 'unavailable',
    code: 'connection_failed',
    isUnconnected,
    cause,
  });
}

function parseBody(response: Response, text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new ApiFailure('the answer is not JSON: is this address a maxsimd service?', {
      kind: 'final',
      code: 'unexpected_response',
      status: response.status,
      ...requestIdOf(response),
    });
  }
}

function failureOf(response: Response, text: string): ApiFailure {
  const error = errorBody(text);
  const code = error?.code ?? 'unexpected_response';
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  const issues = error?.issues ?? [];
  const details = issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  // The message is that of the first issue.
  const message =
    error === undefined ? 'no error body' : [...new Set([error.message, ...details])].join('; ');
  return new ApiFailure(`${response.status} ${code}: ${message}`, {
    kind: kindOf(response.status, code),
    code,
    status: response.status,
    issues,
    ...(Number.isFinite(retryAfter) && retryAfter >= 0 ? { retryAfterSeconds: retryAfter } : {}),
    ...requestIdOf(response),
  });
}

function requestIdOf(response: Response): { readonly requestId?: string } {
  const requestId = response.headers.get('x-request-id');
  return requestId === null ? {} : { requestId };
}

function errorBody(
  text: string,
): { readonly code: string; readonly message: string; readonly issues: readonly Issue[] } | undefined {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return undefined;
  }
  const error = isObject(body) ? body['error'] : undefined;
  if (!isObject(error) || typeof error['code'] !== 'string') return undefined;
  const issues = Array.isArray(error['issues']) ? error['issues'].filter(isIssue) : [];
  const message = typeof error['message'] === 'string' ? error['message'] : '';
  return { code: error['code'], message, issues };
}

function isIssue(value: unknown): value is Issue {
  return isObject(value) && typeof value['path'] === 'string' && typeof value['message'] === 'string';
}
