/** Errors that a call may reject with. Decide from the class and `code`. Messages are for people. */
import type { ImportReport } from './import/import.ts';
import type { ErrorDetail } from './types.ts';

export type ErrorCode = ErrorDetail['code'];
export type Issue = NonNullable<ErrorDetail['issues']>[number];

export class MaxsimdError extends Error {
  override name = 'MaxsimdError';
}

interface ApiErrorDetails {
  readonly status: number;
  /** `unexpected_response` means that the answer is not of this API. It may come from a proxy. */
  readonly code: ErrorCode | 'unexpected_response';
  readonly issues: readonly Issue[];
  /** For logs and support; not a secret. */
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
}

/** The service answered with an error. */
export class ApiError extends MaxsimdError {
  override name = 'ApiError';
  readonly status: number;
  readonly code: ApiErrorDetails['code'];
  readonly issues: readonly Issue[];
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, details: ApiErrorDetails) {
    const issues = details.issues.map(({ path, message: words }) =>
      path === '' ? words : `${path}: ${words}`,
    );
    const request = details.requestId === undefined ? '' : ` (request ${details.requestId})`;
    // The service sends the first issue as its message.
    super(`${details.status} ${details.code}: ${[...new Set([message, ...issues])].join('; ')}${request}`);
    this.status = details.status;
    this.code = details.code;
    this.issues = details.issues;
    this.requestId = details.requestId;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/** No answer came. */
export class ConnectionError extends MaxsimdError {
  override name = 'ConnectionError';
  readonly code: 'timeout' | 'connection_failed';
  /** Whether the service may have received the request and carried it out. */
  readonly maybeReceived: boolean;

  constructor(
    message: string,
    details: {
      readonly code: ConnectionError['code'];
      readonly maybeReceived: boolean;
      readonly cause: unknown;
    },
  ) {
    super(message, { cause: details.cause });
    this.code = details.code;
    this.maybeReceived = details.maybeReceived;
  }
}

/** A request failed. */
export type RequestError = ApiError | ConnectionError;

/** An import stopped early. `cause` says why, and `report` how far it came. Importing the same again is safe. */
export class ImportError extends MaxsimdError {
  override name = 'ImportError';
  readonly report: ImportReport;

  constructor(cause: unknown, report: ImportReport) {
    super(`the import stopped after ${report.documents} documents: ${(cause as Error).message}`, {
      cause,
    });
    this.report = report;
  }
}
