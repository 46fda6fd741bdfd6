/**
 * The one table of errors (interface specification, section "Errors"). Every failure that a client can see is a row. Answers,
 * the OpenAPI document and docs/reference/errors.md follow from it. Broken invariants have no row: they are asserts ("this
 * is a bug").
 */

export interface ErrorRow {
  readonly httpStatus: number;
  readonly condition: string;
}

export const errorTable = {
  authentication_failed: { httpStatus: 401, condition: 'API key missing, invalid or revoked.' },
  tenant_suspended: { httpStatus: 403, condition: 'Tenant is suspended.' },
  permission_denied: {
    httpStatus: 403,
    condition: 'The API key may only read. (An addition: operators create such keys.)',
  },
  not_found: { httpStatus: 404, condition: 'Tenant-scoped resource not found.' },
  validation_error: {
    httpStatus: 422,
    condition: 'Request failed validation, or would exceed the document allowance.',
  },
  rate_limit_exceeded: { httpStatus: 429, condition: 'Tenant request rate exceeded.' },
  concurrency_limit_exceeded: { httpStatus: 429, condition: 'Tenant concurrency limit exceeded.' },
  usage_limit_exceeded: { httpStatus: 429, condition: 'Monthly input-token allowance exhausted.' },
  internal_error: { httpStatus: 500, condition: 'Unexpected service failure.' },
  service_unavailable: { httpStatus: 503, condition: 'Service temporarily cannot process the request.' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

/** A validation detail of one field. `path` is dotted, with array positions as numbers (`documents.3.text`). */
export interface Issue {
  readonly path: string;
  readonly message: string;
  readonly code: string;
}

/** A tenant's requests of the last 60 s, at the time of one request. */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

export interface ServiceErrorOptions {
  readonly issues?: readonly Issue[];
  /** Sent as `Retry-After` in whole seconds, at least 1. Required for every 429. */
  readonly retryAfterSeconds?: number;
  /** Sent as `RateLimit-*` if the rate was checked before the request was refused. */
  readonly rate?: RateState;
  /** A status of the protocol (400, 408, 413, 414, 415, 431) in place of the code's. */
  readonly httpStatus?: number;
  /** The tenant whose request was not admitted. */
  readonly tenantId?: string;
  readonly cause?: unknown;
}

/** An operating error, never a broken invariant. It travels up to the boundary, which answers it. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly httpStatus: number;
  readonly issues: readonly Issue[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly rate: RateState | undefined;
  readonly tenantId: string | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.name = 'ServiceError';
    this.code = code;
    this.httpStatus = options.httpStatus ?? errorTable[code].httpStatus;
    this.issues = options.issues;
    this.rate = options.rate;
    this.tenantId = options.tenantId;
    this.retryAfterSeconds =
      options.retryAfterSeconds === undefined ? undefined : Math.max(1, Math.ceil(options.retryAfterSeconds));
  }
}

/** An error as plain data, for another thread: structured clone drops the class and the code of an error. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** A code of Node or of the table. */
  readonly code?: string;
  /** Present when the failure is a `ServiceError`. */
  readonly answer?: Omit<ServiceErrorOptions, 'cause'>;
  readonly cause?: Failure;
}

export function toFailure(thrown: unknown): Failure {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const { name, message, stack = '' } = error;
  return {
    name,
    message,
    stack,
    ...('code' in error && { code: String(error.code) }),
    ...(error instanceof ServiceError && { answer: answerOf(error) }),
    ...(error.cause !== undefined && { cause: toFailure(error.cause) }),
  };
}

function answerOf({ httpStatus, issues, retryAfterSeconds, rate, tenantId }: ServiceError) {
  return {
    httpStatus,
    ...(issues !== undefined && { issues }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(rate !== undefined && { rate }),
    ...(tenantId !== undefined && { tenantId }),
  };
}

export function fromFailure({ name, message, stack, code, answer, cause: from }: Failure): Error {
  const cause = from && fromFailure(from);
  const error =
    answer === undefined
      ? Object.assign(new Error(message, cause && { cause }), { name }, code !== undefined && { code })
      : new ServiceError(code as ErrorCode, message, { ...answer, cause });
  return Object.assign(error, { stack });
}

export function invalid(path: string, message: string, code = 'invalid'): ServiceError {
  return new ServiceError('validation_error', path === '' ? message : `${path}: ${message}`, {
    issues: [{ path, message, code }],
  });
}

/** A failure that passes: 503, with `Retry-After`. */
export function unavailable(message: string, cause?: unknown, retryAfterSeconds = 1): ServiceError {
  return new ServiceError('service_unavailable', message, { retryAfterSeconds, cause });
}

/** Asserts an invariant. Its failure is a defect of this program. */
export function assertInvariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`this is a bug: ${message}`);
}
