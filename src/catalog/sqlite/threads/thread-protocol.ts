/**
 * Messages between the catalog's facade and its threads. Requests carry a number of the sender's; replies
 * come in batches, one a group. Errors cross as plain data: structured clone would drop their class.
 */
import { ServiceError, errorTable, type Issue } from '../../../errors.ts';
import type { ErrorCode } from '../../../errors.ts';

export interface ThreadRequest {
  readonly kind: 'request';
  readonly number: number;
  readonly operation: string;
  readonly input: unknown;
}

export type ThreadMessage = ThreadRequest | { readonly kind: 'finish' };

export type ThreadEvent =
  /** The thread has its file; what it is asked for begins now. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'replies'; readonly replies: readonly ThreadReply[] }
  /** Work nobody waits for has failed and will be tried again. */
  | { readonly kind: 'background_failure'; readonly failure: Failure }
  /** Rows of an index are damaged in the file. */
  | { readonly kind: 'damaged_index'; readonly indexId: string; readonly failure: Failure };

export interface Failure {
  readonly message: string;
  /** Present when the failure is a `ServiceError`. */
  readonly code?: ErrorCode;
  readonly retryAfterSeconds?: number;
  readonly issues?: readonly Issue[];
  /** What it came from, for the log. */
  readonly cause?: string;
}

export type ThreadReply =
  | { readonly number: number; readonly ok: true; readonly value: unknown }
  | { readonly number: number; readonly ok: false; readonly failure: Failure };

export function toFailure(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ServiceError)) {
    return { message, ...(error instanceof Error && error.stack !== undefined && { cause: error.stack }) };
  }
  return {
    message,
    code: error.code,
    ...(error.retryAfterSeconds !== undefined && { retryAfterSeconds: error.retryAfterSeconds }),
    ...(error.issues !== undefined && { issues: error.issues }),
    ...(error.cause !== undefined && { cause: describe(error.cause) }),
  };
}

export function fromFailure(failure: Failure): Error {
  if (failure.code === undefined || !(failure.code in errorTable)) {
    return new Error(failure.message, { cause: failure.cause });
  }
  return new ServiceError(failure.code, failure.message, {
    cause: failure.cause,
    ...(failure.retryAfterSeconds !== undefined && { retryAfterSeconds: failure.retryAfterSeconds }),
    ...(failure.issues !== undefined && { issues: failure.issues }),
  });
}

function describe(cause: unknown): string {
  if (cause instanceof AggregateError) return [cause.message, ...cause.errors.map(describe)].join('; ');
  return cause instanceof Error ? cause.message : String(cause);
}
