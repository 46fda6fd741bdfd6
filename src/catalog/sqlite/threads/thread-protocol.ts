/**
 * Messages between the catalog and its threads. A request carries a number that its reply repeats. The replies of a group of
 * commits come in one message. Errors cross as plain data, because structured clone drops their class.
 */
import { ServiceError, errorTable, type Issue } from '../../../errors.ts';
import type { ErrorCode } from '../../../errors.ts';

export interface ThreadRequest {
  readonly kind: 'request';
  readonly number: number;
  readonly operation: string;
  /** The arguments of the operation. */
  readonly input: readonly unknown[];
}

export type ThreadMessage = ThreadRequest | { readonly kind: 'finish' };

export type ThreadEvent =
  /** The thread has opened its file. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'replies'; readonly replies: readonly ThreadReply[] }
  /** Work in the background has failed and will be tried again. */
  | { readonly kind: 'background_failure'; readonly failure: Failure }
  /** Rows of an index are damaged in the file. */
  | { readonly kind: 'damaged_index'; readonly indexId: string; readonly failure: Failure };

export interface Failure {
  readonly message: string;
  /** Present when the failure is a `ServiceError`. */
  readonly code?: ErrorCode;
  readonly retryAfterSeconds?: number;
  readonly issues?: readonly Issue[];
  /** The cause in words, for the log. */
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
