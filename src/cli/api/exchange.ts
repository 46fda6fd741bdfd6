/**
 * One request, one answer, over the built-in fetch (which keeps connections alive). Never puts the key or
 * a body into a message.
 */
import { CommandFailure, messageOf } from '../failure.ts';
import { isObject, parseJson } from '../json.ts';
import type { Issue } from '../../errors.ts';
import { ApiFailure, kindOf } from './failure.ts';

export interface Endpoint {
  /** Without a trailing slash; may carry a path (behind a proxy). */
  readonly url: string;
  readonly key: string;
  readonly timeoutMs: number;
}

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

/** Checks what the user gave; a `CommandFailure` (usage) says what is wrong with it. */
export function endpointOf(url: string, key: string | undefined, timeoutMs: number): Endpoint {
  if (key === undefined || key === '') {
    throw new CommandFailure('usage_error', 'an API key is needed: --key KEY or MAXSIMD_API_KEY');
  }
  // fetch would quote a malformed header value in its error, and the value is a secret.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new CommandFailure('usage_error', 'the API key holds characters that no key has');
  }
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new CommandFailure('usage_error', '--url must be an http:// or https:// address');
  }
  if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '') {
    throw new CommandFailure('usage_error', '--url takes no credentials, query or fragment');
  }
  return { url: parsed.href.replace(/\/+$/, ''), key, timeoutMs };
}

/** Rejects with an `ApiFailure`, or with the signal's reason when the caller gave up. */
export async function exchange(endpoint: Endpoint, request: ApiRequest): Promise<Answer> {
  const timeout = AbortSignal.timeout(endpoint.timeoutMs);
  const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
  const started = performance.now();
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${endpoint.url}${request.path}`, {
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
    throw timeout.aborted
      ? new ApiFailure(`no answer from ${endpoint.url} within ${endpoint.timeoutMs / 1000} s`, {
          kind: 'unavailable',
          code: 'timeout',
          cause: error,
        })
      : new ApiFailure(`cannot reach ${endpoint.url}: ${connectionProblem(error)}`, {
          kind: 'unavailable',
          code: 'connection_failed',
          cause: error,
        });
  }
  const latencyMs = performance.now() - started;
  if (!response.ok) throw failureOf(response, text);
  return { body: parseBody(response, text), latencyMs };
}

/** fetch says "fetch failed" and keeps the reason in its cause. */
function connectionProblem(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = isObject(cause) && typeof cause['code'] === 'string' ? cause['code'] : undefined;
  const message = messageOf(cause);
  return message === '' ? (code ?? 'connection failed') : message;
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
