/**
 * How one HTTP exchange with the service failed. `kind` says what the client does about it; `code` is
 * the API's (`errorTable`), or one of ours where no answer with a code came.
 */
import type { Issue } from '../../errors.ts';

export type ApiFailureKind =
  /** Wait as asked, for as long as it takes: the service is well, the tenant is over its request rate. */
  | 'rate_limited'
  /** The same, and send fewer at once. */
  | 'concurrency_limited'
  /** No answer, or an answer that promises a better one later. */
  | 'unavailable'
  /** The service failed on this request; again might do, or not. */
  | 'broken'
  /** The same request will fail again. */
  | 'final';

export interface ApiFailureDetails {
  readonly kind: ApiFailureKind;
  readonly code: string;
  /** `undefined` when no answer came. */
  readonly status?: number;
  readonly issues?: readonly Issue[];
  readonly retryAfterSeconds?: number;
  readonly requestId?: string;
  /** No connection was made. */
  readonly isUnconnected?: boolean;
  readonly cause?: unknown;
}

export class ApiFailure extends Error {
  readonly kind: ApiFailureKind;
  readonly code: string;
  readonly status: number | undefined;
  readonly issues: readonly Issue[];
  readonly retryAfterSeconds: number | undefined;
  readonly requestId: string | undefined;
  readonly isUnconnected: boolean;

  constructor(message: string, details: ApiFailureDetails) {
    const request = details.requestId === undefined ? '' : ` (request ${details.requestId})`;
    super(`${message}${request}`, { cause: details.cause });
    this.name = 'ApiFailure';
    this.kind = details.kind;
    this.code = details.code;
    this.status = details.status;
    this.issues = details.issues ?? [];
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.requestId = details.requestId;
    this.isUnconnected = details.isUnconnected ?? false;
  }
}

/** What to do about an answer, from its status and code alone. */
export function kindOf(status: number, code: string): ApiFailureKind {
  if (code === 'rate_limit_exceeded') return 'rate_limited';
  if (code === 'concurrency_limit_exceeded') return 'concurrency_limited';
  if (code === 'usage_limit_exceeded') return 'final';
  // A proxy between us and the service speaks without our codes.
  if (status === 429) return 'rate_limited';
  if (status === 408 || status === 502 || status === 503 || status === 504) return 'unavailable';
  return status >= 500 ? 'broken' : 'final';
}
